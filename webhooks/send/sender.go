package send

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"humanqa/internal/guard"
	"humanqa/internal/signature"
	"humanqa/internal/tracing"
	"humanqa/webhooks/queue"
)

// The limits of reading an answer. The first snippetLimit bytes go into the attempt log.
// The rest up to bodyLimit is read only so that the connection can be used again. A
// longer answer costs its connection.
const (
	snippetLimit = 1 << 10
	bodyLimit    = 64 << 10
	headerLimit  = 64 << 10
	// bodyTime is the time that a body may take after its status.
	bodyTime = time.Second

	// lookEvery is the time between two looks at the CA file.
	lookEvery = time.Second
)

// sender is the HTTP side of the dispatcher: HTTPS only, no proxy, no
// redirects, no compression, addresses checked as they are dialled.
type sender struct {
	Config // as many connections as Pool says are kept open for the next request
	dials  dials

	mu        sync.Mutex // guards the rest
	clients   clients
	seen      []byte    // the CA file, at the last look
	lookAgain time.Time // at the CA file
}

// clients send the requests. Requests of shared may share a connection with others.
type clients struct{ shared, own *http.Client }

func (c clients) close() {
	c.shared.CloseIdleConnections()
	c.own.CloseIdleConnections()
}

func newSender(cfg Config) (*sender, error) {
	s := &sender{Config: cfg, dials: dials{patience: dialPatience}}
	return s, s.trust()
}

// sendDelivery makes one request. The body goes out as it is.
func (s *sender) sendDelivery(ctx context.Context, c queue.Delivery, by secrets) queue.Answer {
	// The signed second is read again from the row. So the time is cut to microseconds,
	// and Postgres cannot round it up.
	began := time.Now()
	a := queue.Answer{At: began.Truncate(time.Microsecond)}
	a.Signed = sign(c.ID, a.At, c.Body, by)
	err := s.postDelivery(ctx, c, by.headers, &a)
	a.Took = time.Since(began)
	a.Response = by.conceal(a.Response)
	if err == nil {
		a.Err += by.blameSecret(a.Status)
		return a
	}
	var timeout net.Error
	switch {
	case errors.Is(err, guard.ErrBlocked):
		a.Err = "the endpoint's address is private or reserved"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		a.Slow, a.Err = true, fmt.Sprintf("no answer within %s", s.Timeout)
	default:
		a.Err = guard.Why(err)
	}
	return a
}

// postDelivery sends the client's own headers, too. Those of the service come last, and win.
func (s *sender) postDelivery(ctx context.Context, c queue.Delivery, own []signature.Header, a *queue.Answer) error {
	if err := guard.WebhookURL(c.URL, s.Allow); err != nil {
		return fmt.Errorf("%w: %w", guard.ErrBlocked, err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	u, err := url.Parse(c.URL)
	if err != nil {
		return err
	}
	way := s.dials.awaitDial(ctx, u.Host)
	defer way.endDial()
	headers := slices.Concat(own, signature.Headers(c.Event, c.ID, c.RequestID, a.At, a.Signed))
	if s.LogName != nil {
		if name := s.LogName(); name != "" {
			headers = append(headers, signature.Header{Name: signature.LogHeader, Value: name})
		}
	}
	if c.Trace != "" {
		headers = append(headers, signature.Header{Name: tracing.Header, Value: c.Trace})
	}
	resp, err := s.currentClients().doRequest(ctx, c, headers, way.markConnected)
	if interim, ok := errors.AsType[*guard.InterimError](err); ok {
		a.Status = interim.Status
		return interim
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	// Many servers answer 200 when their client closes the connection. This client closes
	// it when the time is over, and the 200 may still arrive.
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	a.Status = resp.StatusCode
	// The status has decided; a body that breaks off changes nothing.
	head, _, err := guard.ReadBody(resp, snippetLimit, bodyLimit, bodyTime)
	a.Response = cleanText(string(head))
	a.Slow = errors.Is(err, guard.ErrSlow) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case a.Status < 300:
	case a.Status < 400:
		a.Err = fmt.Sprintf("answered %d; redirects are not followed", a.Status)
	default:
		a.Err = fmt.Sprintf("answered %d", a.Status)
	}
	return nil
}

// doRequest makes the request. The answer of another endpoint at the same host may break
// a shared connection, but each failure counts for the endpoint. So a request that broke
// there is made once more, on a connection of its own. If the first request arrived after
// all, the receiver recognises the delivery by its id.
func (c clients) doRequest(ctx context.Context, d queue.Delivery, headers []signature.Header, connected func()) (*http.Response, error) {
	var company atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		connected()
		conn, secure := got.Conn.(*tls.Conn)
		company.Store(secure && conn.ConnectionState().NegotiatedProtocol == "h2")
	}})
	resp, err := doOnce(traced, c.shared, d, headers)
	if err == nil || ctx.Err() != nil || !company.Load() {
		return resp, err
	}
	return doOnce(ctx, c.own, d, headers)
}

func doOnce(ctx context.Context, client *http.Client, d queue.Delivery, headers []signature.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(d.Body))
	if err != nil {
		return nil, err
	}
	for _, h := range headers {
		req.Header.Set(h.Name, h.Value)
	}
	// It is not sent. It lets net/http send again where the receiver has closed a kept
	// connection: the receiver knows a delivery by its id.
	req.Header["X-Idempotency-Key"] = []string{}
	return client.Do(req)
}

// cleanText makes text from a receiver valid for a text column.
func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// currentClients gives the clients, new ones when the CA file has changed. With a file
// that cannot be used, the old clients stay in use.
func (s *sender) currentClients() clients {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.CAFile == "" || time.Now().Before(s.lookAgain) {
		return s.clients
	}
	if err := s.trust(); err != nil {
		s.Log.WithError(err).Error("the webhook CA file cannot be used; the certificates of before stay trusted")
	}
	return s.clients
}

func (s *sender) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients.close()
}

// trust makes clients that trust the system's certificates and those of the CA file, unless
// the file is the same as before. A file that is not there (yet) adds none: a local receiver
// writes it when it starts.
func (s *sender) trust() error {
	s.lookAgain = time.Now().Add(lookEvery)
	var pem []byte
	if s.CAFile != "" {
		var err error
		if pem, err = os.ReadFile(s.CAFile); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read the webhook CA file: %w", err)
		}
	}
	first := s.clients.shared == nil
	if !first && bytes.Equal(pem, s.seen) {
		return nil
	}
	s.seen = pem
	pool, err := x509.SystemCertPool()
	if err != nil {
		return fmt.Errorf("read the system's certificates: %w", err)
	}
	if pem != nil && !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("the webhook CA file %s holds no certificate", s.CAFile)
	}
	if !first {
		s.clients.close()
	}
	s.clients = s.newClients(pool)
	return nil
}

// newClients gives a client that speaks HTTP/2 where the endpoint offers it, and one that
// does not. With the second client no request shares its connection while it runs.
func (s *sender) newClients(pool *x509.CertPool) clients {
	var one, both http.Protocols
	one.SetHTTP1(true)
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	sessions := tls.NewLRUClientSessionCache(1024)
	return clients{shared: s.newClient(pool, sessions, both), own: s.newClient(pool, sessions, one)}
}

func (s *sender) newClient(pool *x509.CertPool, sessions tls.ClientSessionCache, protocols http.Protocols) *http.Client {
	dialer := &net.Dialer{
		Timeout: s.Timeout, KeepAlive: 30 * time.Second,
		Resolver: s.Resolver, Control: guard.Control(s.Allow),
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: guard.Answers(&http.Transport{
			// No Proxy: one would dial where the guard does not see it.
			DialContext:         dialer.DialContext,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, ClientSessionCache: sessions},
			TLSHandshakeTimeout: s.Timeout,
			DisableCompression:  true,
			Protocols:           &protocols,
			HTTP2: &http.HTTP2Config{
				// The data that a receiver may send before they are read (by default 4
				// MiB a request). They are never so much that other requests on the
				// connection wait.
				MaxReceiveBufferPerStream:     bodyLimit,
				MaxReceiveBufferPerConnection: max(s.Pool, 1) * bodyLimit,
				// A connection that has died, or is not read at the other end, takes no
				// further requests along.
				SendPingTimeout:  s.Timeout / 2,
				PingTimeout:      s.Timeout / 2,
				WriteByteTimeout: s.Timeout,
			},
			// As many as requests run at once, and all of them to one host, where many
			// endpoints may live: a handshake costs more than a delivery.
			MaxIdleConns:           max(1024, s.Pool),
			MaxIdleConnsPerHost:    s.Pool,
			IdleConnTimeout:        idleTime,
			MaxResponseHeaderBytes: headerLimit,
		}),
	}
}
