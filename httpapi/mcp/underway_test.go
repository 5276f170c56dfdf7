package mcp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

// large is an API with one answer, of more than half of what a key of the test may have
// under way.
type large struct{ open }

const share = 1000

func (large) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	body := `{"openFailures":[{"id":"i","description":"` + strings.Repeat("x", share*3/5) + `"}]}`
	_ = wire.Answer{Status: http.StatusOK, Body: []byte(body)}.Send(w)
}

func (large) Authorize(_ http.ResponseWriter, r *http.Request, _ string) (actor string, refusal *wire.Answer) {
	return r.Header.Get("Authorization"), nil
}

// slow is a client that reads the first bytes of its answer once it is let.
type slow struct {
	*httptest.ResponseRecorder
	begun, let chan struct{}
}

func (s slow) Write(p []byte) (int, error) {
	close(s.begun)
	<-s.let
	return s.ResponseRecorder.Write(p)
}

// One key has so many bytes of answers under way, until its clients have read them.
func TestAKeysAnswersUnderWayAreBounded(t *testing.T) {
	t.Parallel()
	for version, c := range map[string]struct{ begin, meta string }{
		statelessSince: {meta: `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`},
		"2025-11-25": {begin: `{"jsonrpc":"2.0","id":1,"method":"initialize",
			"params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			h := New(large{}, "http://127.0.0.1", "test")
			defer h.Stop()
			h.answers = wire.NewQuota(8*share, share, 0) // no call waits
			request := func(key, session, body string) *http.Request {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(body))
				for name, value := range map[string]string{
					"Authorization": "Bearer " + key, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					versionHeader: version, "Mcp-Session-Id": session, "Mcp-Method": "tools/call", "Mcp-Name": "open_failures",
				} {
					if value != "" {
						r.Header.Set(name, value)
					}
				}
				return r
			}
			sessions := map[string]string{}
			call := func(w http.ResponseWriter, key string) {
				if c.begin != "" && sessions[key] == "" {
					begun := httptest.NewRecorder()
					h.ServeHTTP(begun, request(key, "", c.begin))
					sessions[key] = begun.Header().Get("Mcp-Session-Id")
				}
				h.ServeHTTP(w, request(key, sessions[key], `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{
					"name":"open_failures","arguments":{"projectId":"p"}`+c.meta+`}}`))
			}
			called := func(key string) string {
				w := httptest.NewRecorder()
				call(w, key)
				return w.Body.String()
			}
			const refused = "cannot be taken"
			first := slow{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
			call(httptest.NewRecorder(), "ann") // which begins the session, if there is one
			done := make(chan struct{})
			go func() { defer close(done); call(first, "ann") }()
			<-first.begun
			if got := called("ann"); !strings.Contains(got, refused) || !strings.Contains(got, `"id":7`) {
				t.Errorf("a second answer of the key has %d bytes: %.300s", len(got), got)
			}
			if got := called("bob"); strings.Contains(got, refused) {
				t.Errorf("another key is refused: %.300s", got)
			}
			close(first.let)
			<-done
			if got := called("ann"); strings.Contains(got, refused) || strings.Contains(first.Body.String(), refused) {
				t.Errorf("once the first is read: %.300s", got)
			}
			if held := h.answers.Holders(); len(held) > 0 {
				t.Errorf("%v hold bytes of answers that were read", held)
			}
		})
	}
}

// The answer to a request that has ended is taken by no share: nothing would give it back.
func TestAnAnswerAfterTheEndOfItsRequestIsNotTaken(t *testing.T) {
	t.Parallel()
	quota := wire.NewQuota(10, 10, 0)
	share := &underWay{quota: quota, key: "ann"}
	must.NoError(t, share.grow(t.Context(), 5))
	must.NoError(t, share.grow(t.Context(), 3)) // the largest counts
	must.NoError(t, share.grow(t.Context(), 10))
	share.end()
	if err := share.grow(t.Context(), 1); err == nil || len(quota.Holders()) > 0 {
		t.Errorf("%v, and %v hold bytes", err, quota.Holders())
	}
}
