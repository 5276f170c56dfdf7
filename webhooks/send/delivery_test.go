package send_test

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/net/dns/dnsmessage"

	"humanqa/domain/project"
	"humanqa/internal/signature"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
	"humanqa/webhooks"
)

func TestADeliveryCarriesTheSpecifiedHeaders(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL+"/hook", nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()

	r := e.Next()
	secret := []byte("secret of p1")
	if got, want := r.Header.Get("X-Service-Signature"), signature.Of(secret, []byte(r.Body)); got != want {
		t.Errorf("X-Service-Signature is %s, want %s", got, want)
	}
	for name, want := range map[string]string{
		"X-Service-Event": "job.created",
		"Content-Type":    "application/json",
		"User-Agent":      "Service-Webhook/1.0",
		"Accept-Encoding": "",
		"Webhook-Id":      r.Delivery(),
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if seconds, err := strconv.ParseInt(r.Header.Get("Webhook-Timestamp"), 10, 64); err != nil || time.Since(time.Unix(seconds, 0)).Abs() > eventually.Patience {
		t.Errorf("webhook-timestamp is %q", r.Header.Get("Webhook-Timestamp"))
	}
	if err := signature.Verify(secret, r.Header, []byte(r.Body), time.Now()); err != nil {
		t.Errorf("the delivery does not verify: %v", err)
	}
	if r.Path != "/hook" {
		t.Errorf("it went to %s", r.Path)
	}

	b.Settled("p1", map[string]int{"delivered": 1})
	d := b.Deliveries("p1")[0]
	if d.ID.String() != r.Delivery() || d.ID.Version() != 5 {
		t.Errorf("X-Service-Delivery is %s, the delivery's id %s", r.Delivery(), d.ID)
	}
	attempts := b.Attempts("p1", r.Delivery())
	if len(attempts) != 1 || attempts[0].Status.Int64 != 200 || attempts[0].Error != "" || attempts[0].URL != e.URL+"/hook" {
		t.Errorf("the attempt log says %+v", attempts)
	}
}

// Each attempt names the log of its time. A service that does not know its log sends no
// such header, and a client's own never stands for it.
func TestADeliveryNamesItsLog(t *testing.T) {
	b := setup(t)
	var name atomic.Value
	name.Store("the-log/1")
	b.Config.LogName = func() string { return name.Load().(string) }
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL+"/in", nil)
	b.Change("p1", &project.WebhookHeadersSet{Origin: e.URL, Headers: []project.OwnHeader{
		{Name: "X-Service-Log", Sealed: hooktest.Seal("p1", "mine/9")}, // no command writes it
	}})
	b.Subscribe()
	b.Dispatch()
	for i, want := range []string{"the-log/1", "the-log/2"} {
		name.Store(want)
		b.Submit("p1", "j"+strconv.Itoa(i))
		r := e.Next()
		if got := r.Header.Values("X-Service-Log"); !slices.Equal(got, []string{want}) {
			t.Errorf("the delivery names the log %q, want %s", got, want)
		}
		if err := signature.Verify([]byte("secret of p1"), r.Header, []byte(r.Body), time.Now()); err != nil {
			t.Errorf("the delivery does not verify: %v", err)
		}
	}
	b.Change("p1", &project.WebhookHeadersSet{Origin: e.URL})
	name.Store("")
	b.Submit("p1", "j9")
	if got, has := e.Next().Header["X-Service-Log"]; has {
		t.Errorf("an unknown log is named %q", got)
	}
}

// The client's own headers go with every attempt, a test event's too, but to no other origin, and never
// instead of the service's. What a server answers of them is not kept.
func TestOwnHeadersGoToTheirOriginAlone(t *testing.T) {
	b := setup(t)
	const token = "Bearer canary-8d1f0c"
	var failed atomic.Bool
	echo := func(w http.ResponseWriter, r *http.Request) {
		if !failed.Swap(true) {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = w.Write([]byte("you sent " + r.Header.Get("Authorization") + " and " + strings.Repeat("x", 1024-46) + r.Header.Get("Authorization")))
	}
	e, other := b.Endpoint(echo), b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL+"/in", nil)
	b.Change("p1", &project.WebhookHeadersSet{Origin: e.URL, Headers: []project.OwnHeader{
		{Name: "Authorization", Sealed: hooktest.Seal("p1", token)},
		{Name: "User-Agent", Sealed: hooktest.Seal("p1", "mine")}, // no command writes it
	}})
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	first := e.Next()
	for _, r := range []hooktest.Request{first, e.Next()} { // refused, and again
		if got := r.Header.Values("Authorization"); !slices.Equal(got, []string{token}) || r.Header.Get("User-Agent") != "Service-Webhook/1.0" {
			t.Errorf("sent %q as %q", got, r.Header.Get("User-Agent"))
		}
	}
	b.Settled("p1", map[string]int{"delivered": 1})
	for _, a := range b.Attempts("p1", first.Delivery()) {
		if strings.Contains(a.Response, "canary") || !strings.Contains(a.Response, "you sent [sealed] and") {
			t.Errorf("attempt %d keeps %q", a.Attempt, a.Response)
		}
	}
	must.NoError(t, webhooks.NewLog(b.DB).Test(t.Context(), "acc", "p1", uuid.New(), time.Now()))
	if got := e.Next().Header.Get("Authorization"); got != token {
		t.Errorf("the test event carries %q", got)
	}
	b.Change("p1", &project.WebhookSet{URL: other.URL + "/in", At: hooktest.At})
	b.Submit("p1", "j2")
	if r := other.Next(); r.Header.Get("Authorization") != "" {
		t.Errorf("another origin was sent %q", r.Header.Get("Authorization"))
	}
	b.Change("p1", &project.WebhookSet{URL: e.URL + "/elsewhere", At: hooktest.At}, &project.WebhookHeadersSet{Origin: e.URL})
	b.Submit("p1", "j3")
	if r := e.Next(); r.Header.Get("Authorization") != "" {
		t.Errorf("a header that was removed is sent: %q", r.Header.Get("Authorization"))
	}
}

func TestEveryStatusFrom200To299IsSuccess(t *testing.T) {
	b := setup(t)
	codes := []int{200, 201, 202, 204, 206, 226, 299}
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if err != nil {
			code = http.StatusInternalServerError
		}
		w.WriteHeader(code)
	})
	for _, code := range codes {
		id := "p" + strconv.Itoa(code)
		b.Project(id, e.URL+"/"+strconv.Itoa(code), nil)
		b.Submit(id, "j"+id)
	}
	b.Subscribe()
	b.Dispatch()
	for _, code := range codes {
		b.Settled("p"+strconv.Itoa(code), map[string]int{"delivered": 1})
	}
}

func TestRetriesSendIdenticalBytesThenTheEndpointIsDisabled(t *testing.T) {
	b := setup(t)
	b.Config.Retries = []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	e := b.Endpoint(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = w.Write([]byte("out of \x00 order " + strings.Repeat("x", 5000)))
	})
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()

	first := e.Next()
	last := first
	for i, wait := range b.Config.Retries {
		r := e.Next()
		if r.Body != first.Body || r.Delivery() != first.Delivery() ||
			r.Header.Get("X-Service-Signature") != first.Header.Get("X-Service-Signature") {
			t.Errorf("retry %d differs from the first request", i+1)
		}
		if gap := r.At.Sub(last.At); gap < wait {
			t.Errorf("retry %d came after %s, want at least %s", i+1, gap, wait)
		}
		last = r
	}
	b.Settled("p1", map[string]int{"failed": 1})
	if told, want := <-b.Told, "p1 "+first.Delivery()+" answered 500"; told != want {
		t.Errorf("the log was told %q, want %q", told, want)
	}
	e.None()

	attempts := b.Attempts("p1", first.Delivery())
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
	b.Submit("p1", "j2")
	b.Settled("p1", map[string]int{"failed": 1, "held": 1})
	e.None()
}

func TestADeliveryThatSucceedsOnTheThirdRetryKeepsTheEndpoint(t *testing.T) {
	b := setup(t)
	left := make(chan struct{}, 3)
	for range 3 {
		left <- struct{}{}
	}
	e := b.Endpoint(func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-left:
			w.WriteHeader(http.StatusBadGateway)
		default:
		}
	})
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"delivered": 1})
	b.Submit("p1", "j2")
	b.Settled("p1", map[string]int{"delivered": 2})
}

func TestARedirectIsAFailureAndNotFollowed(t *testing.T) {
	b := setup(t)
	b.Config.Retries = []time.Duration{}
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	b.Project("p1", e.URL+"/hook", nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"failed": 1})
	if r := e.Next(); r.Path != "/hook" {
		t.Errorf("the request went to %s", r.Path)
	}
	e.None()
	if d := b.Deliveries("p1")[0]; d.LastError != "answered 307; redirects are not followed" {
		t.Errorf("the failure reads %q", d.LastError)
	}
}

// The contract knows no status and no address that is final at once.
func TestGoneIsAFailedAttemptLikeAnyOther(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusGone))
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	r := e.Next()
	if told, want := <-b.Told, "p1 "+r.Delivery()+" answered 410"; told != want {
		t.Errorf("the log was told %q, want %q", told, want)
	}
	b.Settled("p1", map[string]int{"failed": 1})
	for range b.Config.Retries {
		e.Next()
	}
	e.None()
}

func TestABlockedAddressIsNotDialledAndTriedAgain(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Config.Allow = nil
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"failed": 1})
	if d := b.Deliveries("p1")[0]; d.Attempts != 4 || d.LastError != "the endpoint's address is private or reserved" {
		t.Errorf("the delivery is %+v", d)
	}
	e.None()
}

// A name that was public when the webhook was set now resolves to loopback.
func TestANameThatTurnedPrivateIsNotDialled(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Config.Resolver = resolveTo(t, [4]byte{127, 0, 0, 1})
	b.Config.Allow = nil
	b.Project("p1", "https://rebound.example.com:8443/hook", nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"failed": 1})
	if d := b.Deliveries("p1")[0]; d.Attempts != 4 || d.LastError != "the endpoint's address is private or reserved" {
		t.Errorf("the delivery is %+v", d)
	}
	e.None()
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
	b.Config.Retries = []time.Duration{1200 * time.Millisecond, time.Second, time.Second}
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	late := b.Config.CAFile
	b.Config.CAFile = late + ".later"
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	b.Eventually("the first attempt failed", func() bool {
		list := b.Deliveries("p1")
		return len(list) == 1 && strings.Contains(list[0].LastError, "certificate")
	})
	e.None()
	hooktest.WriteCA(t, b.Config.CAFile, e.Certificate())
	b.Settled("p1", map[string]int{"delivered": 1})
}

func TestAnOversizedResponseIsNeitherReadNorKept(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for r.Context().Err() == nil { // until the sender hangs up
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	r := e.Next()
	b.Settled("p1", map[string]int{"delivered": 1})
	if a := b.Attempts("p1", r.Delivery()); len(a) != 1 || len(a[0].Response) > 4<<10 {
		t.Errorf("the attempt log keeps too much: %d attempts", len(a))
	}
}

func TestATimeOutIsAFailure(t *testing.T) {
	b := setup(t)
	b.Config.Timeout = 100 * time.Millisecond
	b.Config.Retries = []time.Duration{}
	e := b.Endpoint(hooktest.Hang)
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	b.Settled("p1", map[string]int{"failed": 1})
	d := b.Deliveries("p1")[0]
	if d.LastError != "no answer within 100ms" || d.LastStatus.Valid {
		t.Errorf("the delivery is %+v", d)
	}
}
