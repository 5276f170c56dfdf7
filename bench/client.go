package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// callTime is the time after which an answer counts as lost.
const callTime = 30 * time.Second

// client sends one request over and over on one connection. It does no more
// than that: it shares the machine with the server that it measures.
type client struct {
	conn    net.Conn
	answers *bufio.Reader
	request []byte
}

// connectAll opens one client for each key.
func connectAll(ctx context.Context, base string, keys []string) (_ clients, err error) {
	at, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	var all clients
	for _, key := range keys {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", at.Host)
		if err != nil {
			all.close()
			return nil, err
		}
		var request strings.Builder
		_, _ = fmt.Fprintf(&request, "POST /v1/jobs HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", at.Host, key, len(submission), submission)
		all = append(all, &client{conn: conn, answers: bufio.NewReader(conn), request: []byte(request.String())})
	}
	return all, nil
}

// submit sends the request and reads its answer; anything but a 201 is an error.
func (c *client) submit(context.Context) error {
	if err := c.conn.SetDeadline(time.Now().Add(callTime)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusCreated {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return err
}

type clients []*client

func (cs clients) close() {
	for _, c := range cs {
		_ = c.conn.Close() // nothing is under way
	}
}

// round is one round of all clients.
func (cs clients) round(window time.Duration) func(context.Context) (sample, error) {
	return func(ctx context.Context) (sample, error) {
		return closedLoop(ctx, len(cs), window, func(ctx context.Context, c int) error { return cs[c].submit(ctx) })
	}
}
