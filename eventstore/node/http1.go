package node

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// preface is how HTTP/2 begins, and with it gRPC.
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	// prefaceTimeout is how long a connection may take to show its protocol.
	prefaceTimeout = 10 * time.Second
	// maxRequest bounds the bytes that are read of a refused request.
	maxRequest = 64 << 10

	notOffered = "Not offered: this event store speaks streams, gossip and server features over gRPC. " +
		"Persistent subscriptions, projections, users and the HTTP interface are EventStoreDB's own.\n"
)

// protocolListener accepts connections that answer a client of HTTP/1.1 with a refusal.
// Some clients use the original's HTTP interface for features that gRPC lacks, and
// would see a reset otherwise.
type protocolListener struct{ net.Listener }

func (l *protocolListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sniffedConn{Conn: conn}, nil
}

// sniffedConn looks at its first bytes when it is first used, on its own
// goroutine, so that a silent connection delays no other one. gRPC writes before
// it reads, and none of its bytes may reach a client of another protocol.
type sniffedConn struct {
	net.Conn
	once sync.Once
	seen []byte // of the preface, not read yet
	err  error
}

var errNotHTTP2 = errors.New("the connection does not speak HTTP/2")

func (c *sniffedConn) use() { c.once.Do(func() { c.seen, c.err = c.sniff() }) }

func (c *sniffedConn) Write(b []byte) (int, error) {
	if c.use(); c.err != nil {
		return 0, c.err
	}
	return c.Conn.Write(b)
}

func (c *sniffedConn) Read(b []byte) (int, error) {
	c.use()
	if len(c.seen) > 0 {
		n := copy(b, c.seen)
		c.seen = c.seen[n:]
		return n, nil
	}
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(b)
}

// sniff reads as long as the bytes are the preface's. The gRPC server later lifts
// its deadline: it sets one of its own until the connection is established.
func (c *sniffedConn) sniff() ([]byte, error) {
	if err := c.SetDeadline(time.Now().Add(prefaceTimeout)); err != nil {
		return nil, err
	}
	head := make([]byte, 0, len(preface))
	for len(head) < len(preface) && strings.HasPrefix(preface, string(head)) {
		n, err := c.Conn.Read(head[len(head):len(preface)])
		head = head[:len(head)+n]
		if err != nil {
			return nil, err
		}
	}
	if string(head) == preface {
		return head, nil
	}
	return nil, errors.Join(errNotHTTP2, c.refuse(io.MultiReader(bytes.NewReader(head), c.Conn)))
}

// refuse answers a request in HTTP/1.1. It reads the request first: the close of a
// connection with unread bytes would discard the answer.
func (c *sniffedConn) refuse(from io.Reader) error {
	request, err := http.ReadRequest(bufio.NewReader(io.LimitReader(from, maxRequest)))
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return err
	}
	answer := http.Response{
		StatusCode: http.StatusNotImplemented, ProtoMajor: 1, ProtoMinor: 1, Close: true, Request: request,
		Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}},
		ContentLength: int64(len(notOffered)), Body: io.NopCloser(strings.NewReader(notOffered)),
	}
	return answer.Write(c.Conn)
}
