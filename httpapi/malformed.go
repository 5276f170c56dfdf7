package httpapi

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"humanqa/domain"
)

// net/http answers a request that it cannot parse (an escape that is none in
// the path, a missing Host, headers without end) on its own, in plain text and
// before any handler. Every answer of the API is to have the envelope and an
// x-request-id, so the connection puts the envelope in that answer's place.

// envelopeListener gives connections that do.
type envelopeListener struct{ net.Listener }

func (l envelopeListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return envelopeConn{c}, nil
}

type envelopeConn struct{ net.Conn }

// plainHeaders follow the status line of net/http's own answers, written at
// once with it, and of nothing else: a handler's headers come sorted, ours
// start with Cache-Control, and no JSON holds a bare line break.
var plainHeaders = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")

func (c envelopeConn) Write(p []byte) (int, error) {
	end := bytes.IndexByte(p, '\r')
	if end < 0 || !bytes.HasPrefix(p, []byte("HTTP/1.1 ")) || !bytes.HasPrefix(p[end:], plainHeaders) {
		return c.Conn.Write(p)
	}
	status, err := strconv.Atoi(string(p[len("HTTP/1.1 "):][:3]))
	if err != nil {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(malformed(status)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// malformed is the whole answer to a request that is none.
func malformed(status int) []byte {
	id := requestID(nil)
	body := envelope(&domain.Error{
		Kind: domain.KindInvalid, Code: domain.CodeInvalidRequest,
		Message: "the request is malformed: " + http.StatusText(status),
	}, id)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n"+
		"Content-Type: application/json; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n%s: %s\r\n\r\n%s",
		status, http.StatusText(status), len(body), requestIDHeader, id, body)
}
