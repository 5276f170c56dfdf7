package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/sirupsen/logrus"

	"humanqa/webhooks"
)

type listenCmd struct {
	SecretFile string `type:"path" help:"File with the signing secret to verify with; it may be written later."`
	Addr       string `default:"127.0.0.1:0" help:"Loopback address to listen on."`
	Dir        string `type:"path" help:"Where the certificates are kept (listen in the data directory)."`
}

// heard is one delivery of the JSON form.
type heard struct {
	Event      string          `json:"event"`
	DeliveryID string          `json:"deliveryId"`
	Verified   bool            `json:"verified"`
	Problem    string          `json:"problem,omitempty"`
	Body       json.RawMessage `json:"body"`
}

// Run prints what arrives until it is interrupted.
func (c *listenCmd) Run(ctx context.Context, a *app) error {
	dir := c.Dir
	if dir == "" {
		if !hasData(a.cfg) {
			return fmt.Errorf("%w; or name a directory for the certificates with --dir", noData(a.cfg))
		}
		dir = receiverDir(a.cfg)
	}
	var printing sync.Mutex // deliveries arrive in parallel
	receiver, err := webhooks.NewReceiver(ctx, webhooks.ReceiverConfig{
		Dir:    dir,
		Addr:   c.Addr,
		Secret: func() []byte { return readSecret(c.SecretFile, a.log) },
		Received: func(r webhooks.Received) {
			printing.Lock()
			defer printing.Unlock()
			if err := a.hear(r, c.SecretFile != ""); err != nil {
				a.log.WithError(err).Error("print a delivery")
			}
		},
		Log: a.log,
	})
	if err != nil {
		return err
	}
	err = a.print(struct {
		URL    string `json:"url"`
		CAFile string `json:"caFile"`
	}{receiver.URL(), receiver.CAFile()},
		"listening at %s\n\nThe service delivers here if it was started with --demo, or with\n  HUMANQA_WEBHOOK_ALLOW=127.0.0.0/8\n  HUMANQA_WEBHOOK_CA_FILE=%s\n",
		receiver.URL(), receiver.CAFile())
	if err != nil {
		return errors.Join(err, receiver.Close())
	}
	return receiver.Run(ctx)
}

// readSecret reads anew for each delivery: the secret exists only once the
// project has a webhook, and may be rotated. A file that is not there yet
// verifies nothing.
func readSecret(file string, log logrus.FieldLogger) []byte {
	if file == "" {
		return nil
	}
	secret, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.WithError(err).Error("the secret file cannot be read")
	}
	return bytes.TrimSpace(secret)
}

// hear prints one delivery and what its signature is worth.
func (a *app) hear(r webhooks.Received, checked bool) error {
	h := heard{Event: r.Event, DeliveryID: r.DeliveryID, Verified: r.Verified, Body: r.Body}
	signature := "signature verified"
	switch {
	case r.Err != nil:
		h.Problem, signature = r.Err.Error(), "REFUSED: "+r.Err.Error()
	case !r.Verified && checked:
		signature = "signature not checked: the secret file is not there yet"
	case !r.Verified:
		signature = "signature not checked: there is no --secret-file"
	}
	if !json.Valid(h.Body) {
		quoted, err := json.Marshal(string(h.Body))
		if err != nil {
			return err
		}
		h.Body = quoted
	}
	return a.print(h, "%s  %s  %s\n  %s", r.Event, r.DeliveryID, signature, h.Body)
}

// inbox is a receiver whose deliveries are asked for one after the other.
type inbox struct {
	url        string
	deliveries chan webhooks.Received
	stop       func() error

	mu     sync.Mutex
	secret []byte
	seen   map[string]bool // delivery ids that next has given
}

// inboxSize is more than a demo is ever sent.
const inboxSize = 64

func openInbox(ctx context.Context, dir string, log logrus.FieldLogger) (*inbox, error) {
	in := &inbox{deliveries: make(chan webhooks.Received, inboxSize), seen: make(map[string]bool)}
	receiver, err := webhooks.NewReceiver(ctx, webhooks.ReceiverConfig{
		Dir:      dir,
		Secret:   in.currentSecret,
		Received: func(r webhooks.Received) { in.deliveries <- r },
		Log:      log,
	})
	if err != nil {
		return nil, err
	}
	in.url = receiver.URL()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- receiver.Run(ctx) }()
	in.stop = func() error {
		cancel()
		return <-ended
	}
	return in, nil
}

func (in *inbox) currentSecret() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.secret
}

func (in *inbox) setSecret(secret string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.secret = []byte(secret)
}

// next waits for a delivery that was not there before: each comes at least
// once, and a repeat has the same id.
func (in *inbox) next(ctx context.Context) (webhooks.Received, error) {
	for {
		select {
		case r := <-in.deliveries:
			in.mu.Lock()
			repeated := in.seen[r.DeliveryID]
			in.seen[r.DeliveryID] = true
			in.mu.Unlock()
			if !repeated {
				return r, nil
			}
		case <-ctx.Done():
			return webhooks.Received{}, fmt.Errorf("wait for a webhook: %w", ctx.Err())
		}
	}
}
