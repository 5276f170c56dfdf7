package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/sirupsen/logrus"

	"humanqa/internal/service"
	"humanqa/webhooks"
)

type listenCmd struct {
	SecretFile string `type:"path" xor:"secret" help:"File with the signing secret to verify with; it may be written later."`
	Project    string `xor:"secret" help:"Have this project's webhook come here, and verify with its secret, until this ends."`
	ForwardTo  string `help:"Forward each accepted delivery to this URL, byte for byte, and return its answer."`
	Answer     int    `default:"0" help:"Answer every delivery with this status, such as 500, instead of passing it on."`
	Hang       bool   `help:"Answer nothing, until the sender gives up."`
	Addr       string `default:"127.0.0.1:0" help:"Loopback address to listen on."`
	Dir        string `type:"path" help:"Where the certificates are kept (listen in the data directory)."`
}

// Validate implements kong's check of the flags.
func (c *listenCmd) Validate() error {
	if c.Answer != 0 && (c.Answer < 200 || c.Answer > 599) {
		return errors.New("--answer must be a status from 200 to 599")
	}
	if c.Answer != 0 && c.Hang || c.ForwardTo != "" && (c.Answer != 0 || c.Hang) {
		return errors.New("--forward-to, --answer and --hang exclude each other")
	}
	if c.ForwardTo == "" {
		return nil
	}
	if u, err := url.Parse(c.ForwardTo); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--forward-to must be a URL such as http://localhost:3000/hook")
	}
	return nil
}

// heard is one delivery of the JSON form.
type heard struct {
	Event      string          `json:"event"`
	DeliveryID string          `json:"deliveryId"`
	Verified   bool            `json:"verified"`
	Problem    string          `json:"problem,omitempty"`
	Answered   int             `json:"answered,omitempty"` // 0 where it is refused, or left hanging
	Forwarded  string          `json:"forwarded,omitempty"`
	Body       json.RawMessage `json:"body"`
}

// Run prints what arrives until it is interrupted.
func (c *listenCmd) Run(ctx context.Context, a *app) error {
	dir := c.Dir
	if dir == "" {
		if !service.HasData(a.cfg) {
			return fmt.Errorf("%w; or name a directory for the certificates with --dir", service.NoData(a.cfg))
		}
		dir = service.ReceiverDir(a.cfg)
	}
	if c.Project == "" {
		return c.listen(ctx, a, dir, func() []byte { return readSecret(c.SecretFile, a.log) }, nil)
	}
	return a.withCore(ctx, func(ctx context.Context, core *service.Core) error {
		if !core.Served { // else the data directory would be held for as long as this listens
			return errors.New("no service is running here: start it, then listen for the project")
		}
		hook, err := openHook(ctx, core, c.Project)
		if err != nil {
			return err
		}
		return c.listen(ctx, a, dir, func() []byte { return hook.currentSecret(ctx, a.log) }, hook)
	})
}

// listen receives until ctx ends. With a hook, deliveries of the project come
// here meanwhile.
func (c *listenCmd) listen(ctx context.Context, a *app, dir string, secret func() []byte, hook *projectHook) (err error) {
	answers := answerer{cmd: c, client: newForwarder(), ended: ctx.Done()}
	var printing sync.Mutex // deliveries arrive in parallel
	tell := func(h heard, signature string) {
		printing.Lock()
		defer printing.Unlock()
		if err := a.print(h, "%s  %s  %s\n  %s", h.Event, h.DeliveryID, signature, h.Body); err != nil {
			a.log.WithError(err).Error("print a delivery")
		}
	}
	receiver, err := webhooks.NewReceiver(ctx, webhooks.ReceiverConfig{
		Dir:    dir,
		Addr:   c.Addr,
		Secret: secret,
		Received: func(sender context.Context, r webhooks.Received) int {
			h, signature := c.describeDelivery(r)
			if r.Err != nil {
				tell(h, signature)
				return webhooks.NoAnswer // the receiver refuses it
			}
			if c.Hang {
				tell(h, signature+", left hanging")
			}
			h.Answered, h.Forwarded = answers.answer(sender, r)
			switch {
			case c.Hang:
			case h.Forwarded != "":
				tell(h, fmt.Sprintf("%s, %s, answered %d", signature, h.Forwarded, h.Answered))
			default:
				tell(h, fmt.Sprintf("%s, answered %d", signature, h.Answered))
			}
			return h.Answered
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
	if err == nil && hook != nil {
		if err = hook.setURL(ctx, receiver.URL()); err == nil {
			defer func() { err = errors.Join(err, hook.clearURL(ctx, receiver.URL())) }()
		}
	}
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

// describeDelivery says what one delivery is, and what its signature is worth.
func (c *listenCmd) describeDelivery(r webhooks.Received) (h heard, signature string) {
	h = heard{Event: r.Event, DeliveryID: r.DeliveryID, Verified: r.Verified, Body: r.Body}
	signature = "signature verified"
	switch {
	case r.Err != nil:
		h.Problem, signature = r.Err.Error(), "REFUSED: "+r.Err.Error()
	case !r.Verified && c.SecretFile != "":
		signature = "signature not checked: the secret file is not there yet"
	case !r.Verified:
		signature = "signature not checked: there is no --secret-file and no --project"
	}
	if !json.Valid(h.Body) {
		quoted, _ := json.Marshal(string(h.Body)) // a text always encodes
		h.Body = quoted
	}
	return h, signature
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
		Dir:    dir,
		Secret: in.currentSecret,
		Received: func(_ context.Context, r webhooks.Received) int {
			in.deliveries <- r
			return http.StatusNoContent
		},
		Log: log,
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
