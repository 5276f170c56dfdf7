package node

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"humanqa/internal/strangers"
)

const (
	// preface is how HTTP/2 begins, and with it gRPC.
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	// handshakeTime is how long a connection may take to begin.
	handshakeTime = 10 * time.Second
	// maxRequest bounds the bytes that are read of a refused request.
	maxRequest = 64 << 10

	notOffered = "Not offered: this event store speaks streams, gossip and server features over gRPC. " +
		"Persistent subscriptions, projections, users and the HTTP interface are EventStoreDB's own.\n"
)

// handshake is the beginning of a connection by TCP: TLS, and a look at the protocol
// inside. Some clients use the original's HTTP/1.1 interface for features that gRPC lacks.
// They get a refusal, and would see a reset otherwise. Checks of health get an answer.
type handshake struct {
	credentials.TransportCredentials
	tls  *tls.Config            // nil: there is none
	term func() context.Context // the node's
}

func (n *Node) newHandshake(config *tls.Config) handshake {
	return handshake{insecure.NewCredentials(), config, n.Term}
}

var errNotHTTP2 = errors.New("the connection does not speak HTTP/2")

// ServerHandshake runs before gRPC writes anything, on a goroutine of the connection's own.
func (h handshake) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	var user credentials.AuthInfo
	if h.tls != nil {
		user, _ = conn.(*strangers.Conn)
		conn = tls.Server(conn, h.tls)
	}
	begun, err := h.sniff(conn)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return begun, user, nil
}

// begunConn is a connection of which the preface has been read.
type begunConn struct {
	net.Conn
	seen io.Reader
}

func (c *begunConn) Read(b []byte) (int, error) { return c.seen.Read(b) }

// sniff reads as long as the bytes are the preface's.
func (h handshake) sniff(conn net.Conn) (*begunConn, error) {
	head := make([]byte, 0, len(preface))
	for len(head) < len(preface) && strings.HasPrefix(preface, string(head)) {
		n, err := conn.Read(head[len(head):len(preface)])
		head = head[:len(head)+n]
		if err != nil {
			return nil, err
		}
	}
	all := io.MultiReader(bytes.NewReader(head), conn)
	if string(head) != preface {
		return nil, errors.Join(errNotHTTP2, h.answer(conn, all))
	}
	return &begunConn{conn, all}, nil
}

// answer answers a request in HTTP/1.1. It reads the request first: the close of a
// connection with unread bytes would discard the answer.
func (h handshake) answer(conn net.Conn, from io.Reader) error {
	request, err := http.ReadRequest(bufio.NewReader(io.LimitReader(from, maxRequest)))
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return err
	}
	answer := http.Response{ProtoMajor: 1, ProtoMinor: 1, Close: true, Request: request}
	if request.URL.Path == "/health/live" && (request.Method == http.MethodGet || request.Method == http.MethodHead) {
		answer.StatusCode = h.health(request.URL.Query().Get("liveCode"))
	} else {
		answer.StatusCode = http.StatusNotImplemented
		answer.Header = http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
		answer.ContentLength, answer.Body = int64(len(notOffered)), io.NopCloser(strings.NewReader(notOffered))
	}
	return answer.Write(conn)
}

// health is the status of a node that has the log, as the client wants to have it.
func (h handshake) health(wanted string) int {
	status, err := strconv.Atoi(wanted)
	switch {
	case h.term().Err() != nil:
		return http.StatusServiceUnavailable
	case err != nil || status < 200 || status > 599:
		return http.StatusNoContent
	}
	return status
}
