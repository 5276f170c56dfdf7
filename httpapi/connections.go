package httpapi

import (
	"container/list"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
)

const (
	// farewells is the number of connections that are told at the same time why they are
	// refused; farewellTime bounds each.
	farewells    = 64
	farewellTime = time.Second
	// fullTold is the least time between two log lines about too many connections.
	fullTold = time.Minute
)

// CapConns bounds the open connections of a listener. A connection above the limit
// replaces the one that has waited longest for a request, which is closed. Where every
// connection has a request, the new one is answered 503. The server has to report the
// states of its connections (TrackConn).
func CapConns(l net.Listener, limit int, log logrus.FieldLogger) net.Listener {
	return &cappedListener{Listener: l, limit: limit, log: log, saying: make(chan struct{}, farewells)}
}

// TrackConn is for http.Server.ConnState.
func TrackConn(c net.Conn, state http.ConnState) {
	if own, ok := c.(*envelopeConn); ok {
		c = own.Conn
	}
	if own, ok := c.(*cappedConn); ok {
		own.is(state)
	}
}

type cappedListener struct {
	net.Listener
	limit  int
	log    logrus.FieldLogger
	saying chan struct{} // places for connections that are told why they are refused

	mu      sync.Mutex
	open    int
	waiting list.List // connections without a request, the longest first
	told    time.Time
}

type cappedConn struct {
	net.Conn
	of     *cappedListener
	place  *list.Element // among those that wait; under the listener's mutex
	closed bool          // under the listener's mutex, too
}

func (l *cappedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if own := l.admit(c); own != nil {
			return own, nil
		}
		l.refuse(c)
	}
}

// admit gives the connection a place, or nil where there is none.
func (l *cappedListener) admit(c net.Conn) *cappedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.limit {
		l.tell()
		longest := l.waiting.Front()
		if longest == nil {
			return nil
		}
		left, _ := longest.Value.(*cappedConn)
		left.leave()
		_ = underTLS(left.Conn).Close() // ends the read that net/http waits in
	}
	own := &cappedConn{Conn: c, of: l}
	l.open++
	own.place = l.waiting.PushBack(own)
	return own
}

// tell warns the operator in the log. The mutex is held.
func (l *cappedListener) tell() {
	if now := time.Now(); now.Sub(l.told) >= fullTold {
		l.told = now
		l.log.WithField("connections", l.limit).Warn("all connections are taken: the one that waits longest is closed for a new one, or the new one refused")
	}
}

// refuse closes a connection, and first says why if a place for that is free.
func (l *cappedListener) refuse(c net.Conn) {
	select {
	case l.saying <- struct{}{}:
	default:
		_ = underTLS(c).Close()
		return
	}
	go func() {
		defer func() { <-l.saying }()
		defer func() { _ = underTLS(c).Close() }()
		tcp, plain := c.(*net.TCPConn) // TLS would want a handshake first
		if !plain || tcp.SetDeadline(time.Now().Add(farewellTime)) != nil {
			return
		}
		if _, err := tcp.Write(full()); err == nil && tcp.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, tcp) // until the client has read it: unread bytes would reset the connection
		}
	}()
}

// full is the whole answer to a connection above the limit.
func full() []byte {
	return bareAnswer(http.StatusServiceUnavailable, "Retry-After: 5\r\n", &domain.Error{
		Kind: domain.KindUnavailable, Code: domain.CodeUnavailable,
		Message: "too many connections are open", Hint: "close some that you don't need, and try again in a moment",
	})
}

// underTLS is the connection that closes at once: TLS would wait to send its close alert.
func underTLS(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c
}

func (c *cappedConn) is(state http.ConnState) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch {
	case c.closed:
	case state == http.StateIdle && c.place == nil:
		c.place = c.of.waiting.PushBack(c)
	case state == http.StateActive && c.place != nil:
		c.of.waiting.Remove(c.place)
		c.place = nil
	}
}

// leave gives the place back. The listener's mutex is held.
func (c *cappedConn) leave() {
	if c.closed {
		return
	}
	c.closed = true
	c.of.open--
	if c.place != nil {
		c.of.waiting.Remove(c.place)
		c.place = nil
	}
}

func (c *cappedConn) Close() error {
	c.of.mu.Lock()
	c.leave()
	c.of.mu.Unlock()
	return c.Conn.Close()
}
