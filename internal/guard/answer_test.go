package guard

import (
	"bufio"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// raw is a server that says what it likes after a request, and closes when the
// test ends.
func raw(t *testing.T, answer string) string {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(t.Context(), func() { _ = conn.Close() })
			go func() {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = io.WriteString(conn, answer)
				}
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}

func get(t *testing.T, ctx context.Context, address string) (*http.Response, error) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	must.NoError(t, err)
	return (&http.Client{Transport: Answers(transport)}).Do(req)
}

func TestAStatusThatAnnouncesAnAnswerIsNone(t *testing.T) {
	t.Parallel()
	address := raw(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: anything\r\n\r\n")
	resp, err := get(t, t.Context(), address)
	var interim *InterimError
	if !errors.As(err, &interim) || interim.Status != 101 {
		if err == nil {
			_ = resp.Body.Close()
		}
		t.Fatalf("101 gave %v", err)
	}
}

// endless is a body whose reads end only when it is closed, whatever context the
// request had.
type endless struct {
	closed chan struct{}
	once   func() // closes it
}

func (e endless) Read([]byte) (int, error) { <-e.closed; return 0, net.ErrClosed }
func (e endless) Close() error             { e.once(); return nil }

func (e endless) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: e}, nil
}

func TestEveryReadOfABodyEndsWithTheRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://example.com/", http.NoBody)
	closed := make(chan struct{})
	resp, err := Answers(endless{closed, sync.OnceFunc(func() { close(closed) })}).RoundTrip(req)
	must.NoError(t, err)
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the read ended with %v", err)
	}
}

func TestABodyIsReadAsFarAsWanted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		head   string
		longer bool
		failed bool
	}{
		"whole":           {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345", "12345", false, false},
		"as much as kept": {"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n12345678", "12345678", false, false},
		"longer":          {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + strings.Repeat("1", 99), "11111111", true, false},
		"without an end":  {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n123", "123", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := get(t, t.Context(), raw(t, c.answer))
			must.NoError(t, err)
			defer resp.Body.Close()
			limit := eventually.Patience
			if c.failed {
				limit = 100 * time.Millisecond
			}
			head, longer, err := ReadBody(resp, 8, 4, limit)
			if string(head) != c.head || longer != c.longer || errors.Is(err, ErrSlow) != c.failed || (err != nil) != c.failed {
				t.Errorf("read %q, longer %v, %v", head, longer, err)
			}
		})
	}
}

// A server, the address and a certificate may hold a client's own words.
func TestTheErrorOfARequestQuotesNeitherItsAddressNorTheAnswer(t *testing.T) {
	t.Parallel()
	ask := func(url string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/canary?token=canary", nil)
		must.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	for want, err := range map[string]error{
		"the connection failed":                              ask(raw(t, "HTTP/1.1 canary\r\n\r\n")),
		"answered 101":                                       fmt.Errorf("canary: %w", &InterimError{Status: 101}),
		"the host name does not exist":                       &url.Error{URL: "https://canary.example/", Err: &net.DNSError{Name: "canary.example", IsNotFound: true}},
		"the certificate is not signed by a known authority": x509.UnknownAuthorityError{Cert: &x509.Certificate{Subject: pkix.Name{CommonName: "canary"}}},
		"the certificate is for another host":                x509.HostnameError{Host: "canary", Certificate: &x509.Certificate{DNSNames: []string{"canary"}}},
	} {
		said := Unquoted(err)
		if err == nil || said.Error() != want || !errors.Is(said, err) {
			t.Errorf("of %v it says %q, want %q", err, said, want)
		}
	}
}
