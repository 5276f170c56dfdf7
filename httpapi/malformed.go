package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync/atomic"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

// net/http itself answers a request that it cannot parse (an invalid escape in the path,
// a missing Host, endless headers), or whose expectation it does not know. That answer is
// plain text or has no body, and comes before any handler. Every answer of the API has
// the envelope and an x-request-id, so the connection replaces that answer by the
// envelope.
//
// The connection knows those answers by the time at which they are written. Their content
// is no proof: a handler may send a file with the same bytes.

// envelopeListener gives connections that replace net/http's own answers.
type envelopeListener struct{ net.Listener }

func (l envelopeListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &envelopeConn{Conn: c}, nil
}

type envelopeConn struct {
	net.Conn
	// handled says that a handler writes: from its call until net/http waits for the next
	// request.
	handled atomic.Bool
}

type connKey struct{}

// handlersConns has the server tell its connections when a handler is at work.
func handlersConns(srv *http.Server) {
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, c)
	}
	srv.ConnState = func(c net.Conn, state http.ConnState) {
		TrackConn(c, state)
		if own, ok := c.(*envelopeConn); ok && state == http.StateIdle {
			own.handled.Store(false)
		}
	}
	h := srv.Handler
	srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if own, ok := r.Context().Value(connKey{}).(*envelopeConn); ok {
			own.handled.Store(true)
		}
		h.ServeHTTP(w, r)
	})
}

// statusLine matches the first line of net/http's own answers.
var statusLine = regexp.MustCompile(`^HTTP/1\.[01] ([45][0-9][0-9]) `)

func (c *envelopeConn) Write(p []byte) (int, error) {
	if c.handled.Load() {
		return c.Conn.Write(p)
	}
	found := statusLine.FindSubmatch(p)
	if found == nil {
		return c.Conn.Write(p)
	}
	status, err := strconv.Atoi(string(found[1]))
	if err != nil {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(malformed(status)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// malformed is the whole answer to a request that cannot be parsed.
func malformed(status int) []byte {
	return bareAnswer(status, "", &domain.Error{
		Kind: domain.KindInvalid, Code: domain.CodeInvalidRequest,
		Message: "the request is malformed: " + http.StatusText(status),
	})
}

// bareAnswer is the whole answer to a connection that has no request yet, and ends it.
// Each of headers ends in CRLF.
func bareAnswer(status int, headers string, e *domain.Error) []byte {
	id := wire.RequestID(nil)
	body := wire.Envelope(e, id)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n"+
		"Content-Type: application/json\r\n%sX-Content-Type-Options: nosniff\r\n%s: %s\r\n\r\n%s",
		status, http.StatusText(status), len(body), headers, wire.RequestIDHeader, id, body)
}
