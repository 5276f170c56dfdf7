package webhooks_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"humanqa/internal/must"
	"humanqa/webhooks"
)

func TestADeliveryCarriesTheSpecifiedHeaders(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL+"/hook", nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()

	r := e.next()
	secret := []byte("secret of p1")
	if got, want := r.header.Get("X-Service-Signature"), webhooks.Signature(secret, []byte(r.body)); got != want {
		t.Errorf("X-Service-Signature is %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"X-Service-Event": "job.created",
		"Content-Type":    "application/json",
		"User-Agent":      "Service-Webhook/1.0",
		"Accept-Encoding": "",
		"Webhook-Id":      r.delivery(),
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if seconds, err := strconv.ParseInt(r.header.Get("Webhook-Timestamp"), 10, 64); err != nil || time.Since(time.Unix(seconds, 0)).Abs() > time.Minute {
		t.Errorf("webhook-timestamp is %q", r.header.Get("Webhook-Timestamp"))
	}
	if err := webhooks.Verify(secret, r.header, []byte(r.body), time.Now()); err != nil {
		t.Errorf("the delivery does not verify: %v", err)
	}
	if r.path != "/hook" {
		t.Errorf("it went to %s", r.path)
	}

	b.settled("p1", map[string]int{"delivered": 1})
	d := b.deliveries("p1")[0]
	if d.ID.String() != r.delivery() || d.ID.Version() != 5 {
		t.Errorf("X-Service-Delivery is %s, the delivery's id %s", r.delivery(), d.ID)
	}
	attempts := b.attempts("p1", r.delivery())
	if len(attempts) != 1 || attempts[0].Status.Int64 != 200 || attempts[0].Error != "" || attempts[0].URL != e.URL+"/hook" {
		t.Errorf("the attempt log says %+v", attempts)
	}
}

func TestEveryStatusFrom200To299IsSuccess(t *testing.T) {
	b := setup(t)
	codes := []int{200, 201, 202, 204, 206, 226, 299}
	e := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			code = http.StatusInternalServerError
		}
		w.WriteHeader(code)
	})
	for _, code := range codes {
		id := "p" + strconv.Itoa(code)
		b.project(id, e.URL+"/"+strconv.Itoa(code), nil)
		b.submit(id, "j"+id)
	}
	b.subscribe()
	b.dispatch()
	for _, code := range codes {
		b.settled("p"+strconv.Itoa(code), map[string]int{"delivered": 1})
	}
}

func TestRetriesSendIdenticalBytesThenTheEndpointIsDisabled(t *testing.T) {
	b := setup(t)
	b.cfg.Retries = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	e := b.endpoint(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("out of \x00 order " + strings.Repeat("x", 5000)))
	})
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()

	first := e.next()
	last := first
	for i, wait := range b.cfg.Retries {
		r := e.next()
		if r.body != first.body || r.delivery() != first.delivery() ||
			r.header.Get("X-Service-Signature") != first.header.Get("X-Service-Signature") {
			t.Errorf("retry %d differs from the first request", i+1)
		}
		if gap := r.at.Sub(last.at); gap < wait {
			t.Errorf("retry %d came after %s, want at least %s", i+1, gap, wait)
		}
		last = r
	}
	b.settled("p1", map[string]int{"failed": 1})
	if told, want := <-b.told, "p1 "+first.delivery()+" answered 500"; told != want {
		t.Errorf("the log was told %q, want %q", told, want)
	}
	e.none()

	attempts := b.attempts("p1", first.delivery())
	if len(attempts) != 4 {
		t.Fatalf("%d attempts are logged, want 4", len(attempts))
	}
	for i, a := range attempts {
		if a.Attempt != i+1 || a.Status.Int64 != 500 || a.Error != "answered 500" {
			t.Errorf("attempt %d is logged as %+v", i+1, a)
		}
		if len(a.Response) > 2000 || !strings.HasPrefix(a.Response, "out of \uFFFD order") {
			t.Errorf("attempt %d keeps the response %q", i+1, a.Response)
		}
	}

	// What happens from now on is held, and nothing is sent.
	b.submit("p1", "j2")
	b.settled("p1", map[string]int{"failed": 1, "held": 1})
	e.none()
}

func TestADeliveryThatSucceedsOnTheThirdRetryKeepsTheEndpoint(t *testing.T) {
	b := setup(t)
	left := make(chan struct{}, 3)
	for range 3 {
		left <- struct{}{}
	}
	e := b.endpoint(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-left:
			w.WriteHeader(http.StatusBadGateway)
		default:
		}
	})
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"delivered": 1})
	b.submit("p1", "j2")
	b.settled("p1", map[string]int{"delivered": 2})
}

func TestARedirectIsAFailureAndNotFollowed(t *testing.T) {
	b := setup(t)
	b.cfg.Retries = []time.Duration{}
	e := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	b.project("p1", e.URL+"/hook", nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"failed": 1})
	if r := e.next(); r.path != "/hook" {
		t.Errorf("the request went to %s", r.path)
	}
	e.none()
	if d := b.deliveries("p1")[0]; d.LastError != "answered 307; redirects are not followed" {
		t.Errorf("the failure reads %q", d.LastError)
	}
}

// The contract knows no status and no address that is final at once.
func TestGoneIsAFailedAttemptLikeAnyOther(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusGone))
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	r := e.next()
	if told, want := <-b.told, "p1 "+r.delivery()+" answered 410"; told != want {
		t.Errorf("the log was told %q, want %q", told, want)
	}
	b.settled("p1", map[string]int{"failed": 1})
	for range b.cfg.Retries {
		e.next()
	}
	e.none()
}

func TestABlockedAddressIsNotDialledAndTriedAgain(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.cfg.Allow = nil
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"failed": 1})
	if d := b.deliveries("p1")[0]; d.Attempts != 4 || d.LastError != "the endpoint's address is private or reserved" {
		t.Errorf("the delivery is %+v", d)
	}
	e.none()
}

// A name that was public when the webhook was set now resolves to loopback.
func TestANameThatTurnedPrivateIsNotDialled(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.cfg.Resolver = resolveTo(t, [4]byte{127, 0, 0, 1})
	b.cfg.Allow = nil
	b.project("p1", "https://rebound.example.com:8443/hook", nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"failed": 1})
	if d := b.deliveries("p1")[0]; d.Attempts != 4 || d.LastError != "the endpoint's address is private or reserved" {
		t.Errorf("the delivery is %+v", d)
	}
	e.none()
}

// resolveTo is a resolver that gives one address for every name.
func resolveTo(t *testing.T, addr [4]byte) *net.Resolver {
	t.Helper()
	server, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	must.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response, m.Additionals = true, nil
			if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
				m.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1},
					Body:   &dnsmessage.AResource{A: addr},
				}}
			}
			if out, err := m.Pack(); err == nil {
				_, _ = server.WriteTo(out, from) // the resolver asks again
			}
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

func TestAnUntrustedCertificateFailsUntilTheCAFileNamesIt(t *testing.T) {
	b := setup(t)
	b.cfg.Retries = []time.Duration{1200 * time.Millisecond, time.Second, time.Second}
	e := b.endpoint(status(http.StatusOK))
	late := b.cfg.CAFile
	b.cfg.CAFile = late + ".later"
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	b.eventually("the first attempt failed", func() bool {
		list := b.deliveries("p1")
		return len(list) == 1 && strings.Contains(list[0].LastError, "certificate")
	})
	e.none()
	writeCA(t, b.cfg.CAFile, e.Certificate())
	b.settled("p1", map[string]int{"delivered": 1})
}

func TestAnOversizedResponseIsNeitherReadNorKept(t *testing.T) {
	b := setup(t)
	e := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for r.Context().Err() == nil { // until the sender hangs up
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	r := e.next()
	b.settled("p1", map[string]int{"delivered": 1})
	if a := b.attempts("p1", r.delivery()); len(a) != 1 || len(a[0].Response) > 4<<10 {
		t.Errorf("the attempt log keeps too much: %d attempts", len(a))
	}
}

func TestATimeOutIsAFailure(t *testing.T) {
	b := setup(t)
	b.cfg.Timeout, b.cfg.Lease = 100*time.Millisecond, time.Second
	b.cfg.Retries = []time.Duration{}
	e := b.endpoint(hang)
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.subscribe()
	b.dispatch()
	b.settled("p1", map[string]int{"failed": 1})
	d := b.deliveries("p1")[0]
	if d.LastError != "no answer within 100ms" || d.LastStatus.Valid {
		t.Errorf("the delivery is %+v", d)
	}
}
