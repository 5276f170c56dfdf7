package send

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/internal/guard"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/webhooks/queue"
)

// toEndpoint gives a sender that trusts a server of its own, which offers HTTP/2,
// and what it sends there.
func toEndpoint(t *testing.T, timeout time.Duration, handle http.HandlerFunc) (*httptest.Server, *sender, func(path string) queue.Answer) {
	t.Helper()
	server := httptest.NewUnstartedServer(handle)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	must.NoError(t, os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	s, err := newSender(Config{CAFile: caFile, Timeout: timeout, Allow: guard.Allow{netip.MustParsePrefix("127.0.0.0/8")}}.withDefaults())
	must.NoError(t, err)
	t.Cleanup(s.close)
	return server, s, func(path string) queue.Answer {
		return s.sendDelivery(t.Context(), queue.Delivery{ID: "d", Event: "job.created", URL: server.URL + path, Body: []byte("{}")}, secrets{present: []byte("secret")})
	}
}

func TestHTTP2IsSpokenWhereItIsOffered(t *testing.T) {
	t.Parallel()
	var last atomic.Pointer[http.Request]
	server, s, send := toEndpoint(t, eventually.Patience, func(_ http.ResponseWriter, r *http.Request) { last.Store(r) })
	connections := map[string]bool{}
	for range 10 {
		if a := send("/"); a.Err != "" || a.Status != http.StatusOK {
			t.Fatalf("the answer is %+v", a)
		}
		r := last.Load()
		connections[r.RemoteAddr] = true
		if r.ProtoMajor != 2 || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("%s, %v", r.Proto, r.Header)
		}
	}
	if len(connections) != 1 || last.Load().TLS.DidResume {
		t.Errorf("ten requests took %d connections, resumed: %t", len(connections), last.Load().TLS.DidResume)
	}

	another := func() *http.Request {
		eventually.True(t, "another connection is used", func() bool {
			s.close() // what is idle by now
			if a := send("/"); a.Err != "" {
				t.Fatalf("the answer is %+v", a)
			}
			return !connections[last.Load().RemoteAddr]
		})
		connections[last.Load().RemoteAddr] = true
		return last.Load()
	}
	if !another().TLS.DidResume {
		t.Error("the next connection began with a whole handshake")
	}
	server.TLS.NextProtos = []string{"http/1.1"} // its listener shares it
	if r := another(); r.ProtoMajor != 1 {
		t.Errorf("an endpoint that does not offer it is sent %s", r.Proto)
	}
}

// What guards requests of HTTP/1 does so for those that share a connection; one that
// hangs there, or breaks it, is not felt by the others.
func TestGuardsHoldOverHTTP2(t *testing.T) {
	t.Parallel()
	const timeout = 10 * time.Second // more than a body may take, on a busy machine
	var flooded atomic.Int64
	until := func(r *http.Request, write func() error) {
		for r.Context().Err() == nil && write() == nil {
		}
	}
	handle := map[string]http.HandlerFunc{
		"/hang": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"/drip": func(w http.ResponseWriter, r *http.Request) {
			until(r, func() error {
				_, err := io.WriteString(w, "x")
				<-time.After(10 * time.Millisecond)
				return errors.Join(err, http.NewResponseController(w).Flush())
			})
		},
		"/flood": func(w http.ResponseWriter, r *http.Request) {
			chunk := bytes.Repeat([]byte("y"), 1<<10)
			until(r, func() error {
				n, err := w.Write(chunk)
				flooded.Add(int64(n))
				return err
			})
		},
		"/hints": func(w http.ResponseWriter, r *http.Request) {
			until(r, func() error { w.WriteHeader(http.StatusEarlyHints); return nil })
		},
		"/headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 2*headerLimit))
		},
		"/broken": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"/away":   func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/fine", http.StatusFound) },
		"/fine":   func(http.ResponseWriter, *http.Request) {},
	}
	_, _, send := toEndpoint(t, timeout, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else it would not notice that the sender hangs up
		handle[r.URL.Path](w, r)
	})
	// This opens the connection that the others share. What the server has written is
	// more than was sent: it has buffers of its own.
	if a := send("/flood"); a.Status != 200 || a.Response != strings.Repeat("y", snippetLimit) || flooded.Load() > 8*bodyLimit {
		t.Errorf("%d bytes of an endless body were taken: %+v", flooded.Load(), a)
	}
	var sent sync.WaitGroup
	for path, holds := range map[string]func(a queue.Answer) bool{
		"/hang":    func(a queue.Answer) bool { return a.Status == 0 && a.Slow && a.Err == "no answer within 10s" },
		"/drip":    func(a queue.Answer) bool { return a.Status == 200 && a.Took < timeout },
		"/hints":   func(a queue.Answer) bool { return a.Status == 0 && a.Err != "" },
		"/headers": func(a queue.Answer) bool { return a.Status == 0 && a.Err != "" },
		"/broken":  func(a queue.Answer) bool { return a.Status == 0 && a.Err != "" },
		"/away": func(a queue.Answer) bool {
			return a.Status == 302 && a.Err == "answered 302; redirects are not followed"
		},
	} {
		sent.Go(func() {
			if a := send(path); !holds(a) {
				t.Errorf("%s: %+v", path, a)
			}
		})
	}
	for range 20 {
		if a := send("/fine"); a.Err != "" {
			t.Errorf("beside the others: %+v", a)
		}
	}
	sent.Wait()
}

// A receiver closes a connection that it kept, just as the next delivery goes out on it. That
// is no failed attempt: the delivery goes out again on a new connection.
func TestAKeptConnectionThatItsReceiverClosedIsNoFailure(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int32
	closing := make(chan struct{})
	server, _, send := toEndpoint(t, eventually.Patience, func(w http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) != 2 {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack() // the second request gets no answer, as one that comes too late
		if err == nil {
			err = conn.Close()
		}
		if err != nil || r.Header.Get("X-Idempotency-Key") != "" {
			t.Errorf("%v, %v", err, r.Header)
		}
		close(closing)
	})
	server.TLS.NextProtos = []string{"http/1.1"}
	for range 3 {
		if a := send("/"); a.Err != "" || a.Status != http.StatusOK {
			t.Errorf("the answer is %+v", a)
		}
	}
	<-closing
	if n := arrived.Load(); n != 4 {
		t.Errorf("%d requests for three deliveries and one that was cut off", n)
	}
}
