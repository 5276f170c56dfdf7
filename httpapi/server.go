package httpapi

import (
	"context"
	"errors"
	"fmt"
	stdlog "log" //nolint:depguard // net/http takes no other logger
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/httpapi/wire"
)

const (
	// readTime lets 50 MB through at half a megabyte a second.
	readTime = 100 * time.Second
	// headerTime is short: a client that trickles its headers holds nothing
	// but a connection, and not for long.
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeaders = 64 << 10
)

// NewServer wraps a handler with the time-outs that face the open network. A handler with
// a method Stop has it called when the server begins to shut down.
func NewServer(h http.Handler, log logrus.FieldLogger) *http.Server {
	return newServer(h, log, wire.BodyGrace)
}

func newServer(h http.Handler, log logrus.FieldLogger, grace time.Duration) *http.Server {
	srv := &http.Server{
		Handler:           pacedBodies(h, grace),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      readTime + authenticateTime + requestTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaders,
		ErrorLog:          stdlog.New(logWriter{log}, "", 0),
		// "OPTIONS *" gets an envelope, too.
		DisableGeneralOptionsHandler: true,
	}
	handlersConns(srv)
	if s, ok := h.(interface{ Stop() }); ok {
		srv.RegisterOnShutdown(s.Stop)
	}
	return srv
}

// Serve serves until ctx ends, then drains: accepted requests finish, new ones are
// refused. Requests that have not finished within grace are cut off, and reported.
func Serve(ctx context.Context, srv *http.Server, ln net.Listener, grace time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- srv.Serve(envelopeListener{ln}) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := srv.Shutdown(drain)
	if err != nil {
		err = errors.Join(fmt.Errorf("drain %s: %w", ln.Addr(), err), srv.Close())
	}
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// logWriter carries net/http's own complaints, about broken clients mostly,
// into the log.
type logWriter struct{ log logrus.FieldLogger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.WithField("part", "http server").Debug(strings.TrimSpace(string(p)))
	return len(p), nil
}
