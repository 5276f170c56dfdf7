// Package receiver is a local HTTPS server for webhooks: it verifies deliveries. The
// client and the service's developers' tools use it, so it knows nothing of the service.
package receiver

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log" //nolint:depguard // net/http takes no other logger
	"net"
	"net/http"
	"path/filepath"
	"time"

	"humanqa/internal/signature"
)

// receivedLimit is the longest delivery a Receiver takes.
const receivedLimit = 4 << 20

// NoAnswer cuts the connection instead of answering.
const NoAnswer = 0

// Config holds the settings of a Receiver.
type Config struct {
	// Dir keeps the certificates (0700), so that they outlive the process.
	Dir string
	// Addr is a loopback address to listen on; its default is 127.0.0.1:0.
	Addr string
	// Secret gives the secret to verify with. It is asked for each delivery, so
	// it may become known later. Nil, or an empty answer: nothing is verified.
	Secret func() []byte
	// Received is called with each delivery, in parallel, and gives the status to
	// answer it with; with NoAnswer the connection is cut. An error of Verify is
	// answered with 401 all the same. The context ends when the sender gives up.
	Received func(context.Context, Delivery) int
	// Log gets the complaints of net/http, such as failed handshakes; it may be nil.
	Log io.Writer
}

// Delivery is a delivery as it arrived.
type Delivery struct {
	DeliveryID string
	Event      string
	Header     http.Header
	Body       []byte
	// Verified says that the signature was checked and is right. Err says what
	// is wrong with the delivery; with neither, there was no secret to check
	// it with.
	Verified bool
	Err      error
}

// Receiver is a local HTTPS server for webhooks: the other end, for trials. It
// has a certificate of its own for loopback names; the sender has to trust
// CAFile and to allow loopback.
type Receiver struct {
	cfg      Config
	listener net.Listener
	server   *http.Server
}

// New makes the certificates where they are missing or old, and
// listens. Run answers; Close gives up without Run.
func New(ctx context.Context, cfg Config) (*Receiver, error) {
	cfg.Addr = cmp.Or(cfg.Addr, "127.0.0.1:0")
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	cert, err := loopbackCertificate(cfg.Dir, time.Now())
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for webhooks: %w", err)
	}
	if addr, ok := listener.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s is not a loopback address", cfg.Addr), listener.Close())
	}
	r := &Receiver{cfg: cfg, listener: listener}
	r.server = &http.Server{
		Handler:           http.HandlerFunc(r.receiveDelivery),
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}},
		ErrorLog:          log.New(cfg.Log, "", 0),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       10 * time.Second,
		IdleTimeout:       time.Minute,
	}
	return r, nil
}

// URL is where deliveries have to be sent.
func (r *Receiver) URL() string { return "https://" + r.listener.Addr().String() + "/" }

// CAFile is the certificate that the sender has to trust.
func (r *Receiver) CAFile() string { return CAFile(r.cfg.Dir) }

// CAFile is where a Receiver with that directory keeps the certificate to
// trust.
func CAFile(dir string) string { return filepath.Join(dir, "ca.pem") }

// Close stops listening. After Run it does nothing.
func (r *Receiver) Close() error { return r.listener.Close() }

// Run answers until the context ends, and lets what has begun finish.
func (r *Receiver) Run(ctx context.Context) error {
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		stopped <- r.server.Shutdown(within)
	})
	err := r.server.ServeTLS(r.listener, "", "")
	if stop() { // it was not ctx that ended it
		return fmt.Errorf("receive webhooks: %w", err)
	}
	if err := <-stopped; err != nil {
		return fmt.Errorf("stop receiving webhooks: %w", err)
	}
	return nil
}

func (r *Receiver) receiveDelivery(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, receivedLimit))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	got := Delivery{
		DeliveryID: req.Header.Get(signature.DeliveryHeader), Event: req.Header.Get(signature.EventHeader),
		Header: req.Header, Body: body,
	}
	var secret []byte
	if r.cfg.Secret != nil {
		secret = r.cfg.Secret()
	}
	if len(secret) > 0 {
		got.Err = signature.Verify(secret, req.Header, body, time.Now())
		got.Verified = got.Err == nil
	}
	refused := 0
	switch {
	case got.Err != nil:
		refused = http.StatusUnauthorized
	case !json.Valid(body):
		got.Err = errors.New("the body is not JSON")
		refused = http.StatusBadRequest
	}
	code := r.cfg.Received(req.Context(), got)
	switch {
	case refused != 0:
		w.WriteHeader(refused)
	case code == NoAnswer:
		panic(http.ErrAbortHandler)
	default:
		w.WriteHeader(code)
	}
}
