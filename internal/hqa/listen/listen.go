// Package listen receives webhooks on this machine for a developer: it verifies each
// delivery, tells it, and answers as it is told or as the developer's own server does.
package listen

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

	"humanqa/internal/receiver"
)

// Flags say how to answer.
type Flags struct {
	ForwardTo string `help:"Forward each accepted delivery to this URL, byte for byte, and return its answer."`
	Answer    int    `default:"0" help:"Answer every delivery with this status, such as 500, instead of passing it on."`
	Hang      bool   `help:"Answer nothing, until the sender gives up."`
	Addr      string `default:"127.0.0.1:0" help:"Loopback address to listen on."`
}

// Validate implements kong's check of the flags.
func (f Flags) Validate() error {
	if f.Answer != 0 && (f.Answer < 200 || f.Answer > 599) {
		return errors.New("--answer must be a status from 200 to 599")
	}
	if f.Answer != 0 && f.Hang || f.ForwardTo != "" && (f.Answer != 0 || f.Hang) {
		return errors.New("--forward-to, --answer and --hang exclude each other")
	}
	if f.ForwardTo == "" {
		return nil
	}
	if u, err := url.Parse(f.ForwardTo); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--forward-to must be a URL such as http://localhost:3000/hook")
	}
	return nil
}

// Place is the first object that is told: where the listener is.
type Place struct {
	Type       string `json:"type"` // listening
	URL        string `json:"url"`
	CAFile     string `json:"caFile"`
	SecretFile string `json:"secretFile,omitempty"`
}

// Heard is one delivery.
type Heard struct {
	Type       string          `json:"type"` // delivery
	Event      string          `json:"event"`
	DeliveryID string          `json:"deliveryId"`
	Verified   bool            `json:"verified"`
	Problem    string          `json:"problem,omitempty"`
	Answered   int             `json:"answered,omitempty"` // 0 where it is refused, or left hanging
	Forwarded  string          `json:"forwarded,omitempty"`
	Body       json.RawMessage `json:"body"`
}

// Listener holds the settings of Run.
type Listener struct {
	Flags
	Dir        string // of the certificates
	SecretFile string // read anew for each delivery; "" verifies nothing
	// Tell prints a Place or a Heard, as an object or as text. Complain prints failures
	// meanwhile, such as a sender that does not trust the certificate. One of them is
	// called at a time.
	Tell     func(object any, text string) error
	Complain func(line string)
	// Opened is called once the listener answers at the URL; nil: nothing is to be done. An
	// error ends Run.
	Opened func(ctx context.Context, url string) error
}

// told is a Listener that runs. It calls Tell and Complain one after the other: deliveries
// arrive in parallel.
type told struct {
	sync.Mutex
	Listener
	client *http.Client    // passes deliveries on
	ended  <-chan struct{} // listen is being stopped
}

func (t *told) delivery(h Heard, signature string) {
	t.Lock()
	defer t.Unlock()
	if err := t.Tell(h, fmt.Sprintf("%s  %s  %s\n  %s", h.Event, h.DeliveryID, signature, h.Body)); err != nil {
		t.Complain("print a delivery: " + err.Error())
	}
}

// Write implements io.Writer for the complaints of net/http.
func (t *told) Write(line []byte) (int, error) {
	t.Lock()
	defer t.Unlock()
	t.Complain(string(bytes.TrimSpace(line)))
	return len(line), nil
}

// Run receives until ctx ends.
func (l Listener) Run(ctx context.Context) error {
	out := &told{Listener: l, ended: ctx.Done(), client: &http.Client{
		Timeout:       forwardTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	server, err := receiver.New(ctx, receiver.Config{
		Dir:    l.Dir,
		Addr:   l.Addr,
		Secret: out.readSecret,
		Received: func(sender context.Context, r receiver.Delivery) int {
			h, signature := l.describe(r)
			if r.Err != nil {
				out.delivery(h, signature)
				return receiver.NoAnswer // the receiver refuses it
			}
			if l.Hang {
				out.delivery(h, signature+", left hanging")
			}
			h.Answered, h.Forwarded = out.answer(sender, r)
			switch {
			case l.Hang:
			case h.Forwarded != "":
				out.delivery(h, fmt.Sprintf("%s, %s, answered %d", signature, h.Forwarded, h.Answered))
			default:
				out.delivery(h, fmt.Sprintf("%s, answered %d", signature, h.Answered))
			}
			return h.Answered
		},
		Log: out,
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("listening at %s\n\nThe service delivers here if it trusts %s and may reach this machine.\n"+
		"On this machine one that was started with --demo does, or with\n"+
		"  HUMANQA_WEBHOOK_ALLOW=127.0.0.0/8\n  HUMANQA_WEBHOOK_CA_FILE=%[2]s\n", server.URL(), server.CAFile())
	if l.SecretFile != "" {
		text += "The signing secret is read from " + l.SecretFile + "\n"
	}
	err = l.Tell(Place{Type: "listening", URL: server.URL(), CAFile: server.CAFile(), SecretFile: l.SecretFile}, text)
	if err == nil && l.Opened != nil {
		err = l.Opened(ctx, server.URL())
	}
	if err != nil {
		return errors.Join(err, server.Close())
	}
	return server.Run(ctx)
}

// readSecret reads anew for each delivery: the secret exists only once the project has a
// webhook, and may be rotated. A file that is not there yet verifies nothing.
func (t *told) readSecret() []byte {
	if t.SecretFile == "" {
		return nil
	}
	secret, err := os.ReadFile(t.SecretFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		_, _ = fmt.Fprintln(t, "the secret file cannot be read:", err) // Write never fails
	}
	return bytes.TrimSpace(secret)
}

// describe gives the facts of one delivery, and the result of its signature's check.
func (l Listener) describe(r receiver.Delivery) (h Heard, signature string) {
	h = Heard{Type: "delivery", Event: r.Event, DeliveryID: r.DeliveryID, Verified: r.Verified, Body: r.Body}
	signature = "signature verified"
	switch {
	case r.Err != nil:
		h.Problem, signature = r.Err.Error(), "REFUSED: "+r.Err.Error()
	case !r.Verified && l.SecretFile != "":
		signature = "signature not checked: the secret file is not there yet"
	case !r.Verified:
		signature = "signature not checked: there is no secret file"
	}
	if !json.Valid(h.Body) {
		quoted, _ := json.Marshal(string(h.Body)) // a text always encodes
		h.Body = quoted
	}
	return h, signature
}
