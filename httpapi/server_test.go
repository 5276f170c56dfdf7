package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// junk is a body of n bytes that nobody has to keep.
func junk(n int64) io.Reader { return io.LimitReader(junkReader{}, n) }

type junkReader struct{}

var junkPage = bytes.Repeat([]byte("x"), 1<<16)

func (junkReader) Read(p []byte) (int, error) { return copy(p, junkPage), nil }

// online serves the API on a real connection.
func (s *service) online() *httptest.Server {
	s.t.Helper()
	return s.onlineWith(wire.BodyGrace)
}

// onlineWith is online, where bodies have another time before the least rate
// counts.
func (s *service) onlineWith(grace time.Duration) *httptest.Server {
	s.t.Helper()
	srv := httptest.NewUnstartedServer(s.API)
	srv.Config = newServer(s.API, quiet(), grace)
	srv.Listener = envelopeListener{srv.Listener} // as Serve does
	srv.Start()
	s.t.Cleanup(srv.Close)
	return srv
}

func post(t *testing.T, srv *httptest.Server, key string, body io.Reader, length int64) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/jobs", body)
	must.NoError(t, err)
	r.ContentLength = length
	r.Header.Set("Authorization", "Bearer "+key)
	res, err := srv.Client().Do(r)
	must.NoError(t, err)
	defer res.Body.Close()
	var out map[string]any
	must.NoError(t, json.NewDecoder(res.Body).Decode(&out))
	equal(t, out["requestId"], any(res.Header.Get("X-Request-Id")))
	return res.StatusCode, out
}

func TestBodiesOverTheLimitAre413BeforeAnyParsing(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	srv := s.online()
	const declared, chunked = true, false
	for name, c := range map[string]struct {
		size     int64
		declared bool
		status   int
	}{
		"one byte over, declared":  {wire.MaxBody + 1, declared, 413},
		"one byte over, chunked":   {wire.MaxBody + 1, chunked, 413},
		"far over, chunked":        {wire.MaxBody + 8<<20, chunked, 413},
		"exactly at the limit":     {wire.MaxBody, declared, 400},
		"at the limit, chunked":    {wire.MaxBody, chunked, 400},
		"junk, small":              {10, declared, 400},
		"junk over 1 MB":           {3 << 20, chunked, 400},
		"one megabyte to the byte": {wire.SmallBody, chunked, 400},
	} {
		length := int64(-1)
		if c.declared {
			length = c.size
		}
		status, body := post(t, srv, key, junk(c.size), length)
		code := domain.CodeInvalidRequest
		if c.status == 413 {
			code = domain.CodePayloadTooLarge
		}
		if status != c.status || body["code"] != string(code) {
			t.Errorf("%s: got %d %v", name, status, body)
		}
	}
	equal(t, s.Spool.Disk.Holders(), []string{}) // every place was left again
	status, _ := post(t, srv, "nobody", junk(wire.MaxBody+1), wire.MaxBody+1)
	equal(t, status, http.StatusUnauthorized) // 401 comes first
}

func TestAClientThatAsksBeforeItSendsIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	srv := s.online()
	status, _, _ := raw(t, srv.Listener.Addr(), fmt.Sprintf(
		"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", key, wire.MaxBody+1))
	equal(t, status, http.StatusRequestEntityTooLarge)
}

// A client may send everything before it reads, or read before it goes on:
// either gets the answer.
func TestA413IsAnsweredBeforeTheRestHasCome(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	addr := s.onlineWith(time.Hour).Listener.Addr()
	const size = 60 << 20
	request := fmt.Sprintf("POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", key, size)
	for name, begun := range map[string]string{"declared": request, "chunked": fmt.Sprintf(
		"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s", key, size, make([]byte, wire.MaxBody+1))} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), addr.Network(), addr.String())
		must.NoError(t, err)
		must.NoError(t, conn.SetDeadline(time.Now().Add(eventually.Patience)))
		_, err = io.WriteString(conn, begun) // and not the rest: it must not be waited for
		must.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge || !res.Close {
			t.Fatalf("%s: %v %v", name, res, err)
		}
		must.NoError(t, res.Body.Close())
		must.NoError(t, conn.Close())
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), addr.Network(), addr.String())
	must.NoError(t, err)
	defer func() { _ = conn.Close() }()
	must.NoError(t, conn.SetDeadline(time.Now().Add(eventually.Patience)))
	_, err = io.WriteString(conn, request)
	must.NoError(t, err)
	_, err = io.Copy(conn, junk(size)) // nothing is reset meanwhile
	must.NoError(t, err)
	all, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 413 ") || !strings.Contains(string(all), `"code":"PAYLOAD_TOO_LARGE"`) {
		t.Errorf("after everything was sent: %v %s", err, all)
	}
}

// raw sends bytes and reads one answer: its status, its request id, its body.
func raw(t *testing.T, addr net.Addr, request string) (status int, id, body string) {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), addr.Network(), addr.String())
	must.NoError(t, err)
	defer func() { _ = conn.Close() }()
	must.NoError(t, conn.SetDeadline(time.Now().Add(eventually.Patience)))
	_, err = io.WriteString(conn, request)
	must.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must.NoError(t, err)
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	must.NoError(t, err)
	return res.StatusCode, res.Header.Get("X-Request-Id"), string(all)
}

func TestOddRequestLinesGetTheEnvelope(t *testing.T) {
	t.Parallel()
	s := shared(t)
	srv := s.online()
	for line, status := range map[string]int{
		"OPTIONS * HTTP/1.1":                  404,
		"GET //v1//jobs HTTP/1.1":             404,
		"GET http://other/v1/jobs HTTP/1.1":   401,
		"GET /v1/jobs?;;%zz HTTP/1.1":         401,
		"BREW /healthz HTTP/1.1":              405,
		"GET /healthz/../v1/jobs HTTP/1.1":    404,
		"GET /v1%2Fjobs HTTP/1.1":             401,
		"GET /v1/jobs#fragment HTTP/1.1":      401,
		"OPTIONS /v1/jobs HTTP/1.1":           401,
		"GET /%76%31/jobs/../../etc HTTP/1.1": 401,
	} {
		got, id, body := raw(t, srv.Listener.Addr(), line+"\r\nHost: x\r\n\r\n")
		if got != status || !strings.Contains(body, `"requestId":"`+id+`"`) {
			t.Errorf("%s: got %d %s", line, got, body)
		}
	}
}

func TestRequestsThatAreNoneGetTheEnvelope(t *testing.T) {
	t.Parallel()
	s := shared(t)
	srv := s.online()
	for request, status := range map[string]int{
		"GET /v1/jobs/%zz HTTP/1.1\r\nHost: x\r\n\r\n":                                             400,
		"GET /v1/jobs HTTP/1.1\r\n\r\n":                                                            400,
		"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n":                                   400,
		"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n":                          400,
		"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: rot13\r\n\r\n":                    501,
		"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 2*maxHeaders) + "\r\n\r\n": 431,
		"hello\r\n\r\n": 400,
	} {
		got, id, body := raw(t, srv.Listener.Addr(), request)
		var e struct{ Error, Code, RequestID string }
		err := json.Unmarshal([]byte(body), &e)
		if got != status || err != nil || e.Code != string(domain.CodeInvalidRequest) || e.RequestID != id || id == "" {
			t.Errorf("%.60q: got %d %s", request, got, body)
		}
	}
}

func TestABodyThatBreaksOffIsNoFaultOfOurs(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/jobs", io.MultiReader(strings.NewReader(`{"url":`), brokenReader{}))
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	checkEnvelope(t, "a broken body", w)
	equal(t, result{w, t}.paths(), []string{"body"})
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAStopLetsAcceptedRequestsFinish(t *testing.T) {
	t.Parallel()
	entered, proceed := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-proceed
		_, _ = io.WriteString(w, "done")
	})
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- Serve(ctx, NewServer(h, quiet()), ln, time.Minute) }()

	answered := make(chan string, 1)
	go func() {
		r, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, "http://"+ln.Addr().String(), nil)
		if err != nil {
			answered <- err.Error()
			return
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		answered <- string(body)
	}()
	<-entered
	stop()
	// The listener is closed before the drain is over.
	eventually.True(t, "no new connection is accepted", func() bool {
		var d net.Dialer
		conn, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(proceed)
	equal(t, <-answered, "done")
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestAStopCutsOffWhatDoesNotFinish(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- Serve(ctx, NewServer(h, quiet()), ln, time.Millisecond) }()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", ln.Addr().String())
	must.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	must.NoError(t, err)
	<-entered
	stop()
	if err := <-stopped; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
