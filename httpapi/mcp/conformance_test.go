package mcp

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

var clients = flag.String("clients", "", "the folder of clients by others, installed; see make contract")

// open is an API that admits every request.
type open struct{}

func (open) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
func (open) Stop()                                            {}

func (open) Authorize(http.ResponseWriter, *http.Request, string) (actor string, refusal *wire.Answer) {
	return "key:suite", nil
}

// TestTheOfficialSuiteIsPassed runs the protocol's conformance suite against a server of
// fixtures behind our handlers. testdata/conformance.yml names what is not passed, and why.
func TestTheOfficialSuiteIsPassed(t *testing.T) {
	if *clients == "" {
		t.Skip("make contract runs it")
	}
	suite := filepath.Join(*clients, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
	node, err := filepath.Glob(filepath.Join(*clients, "node_modules/node-*/bin/node")) // the suite needs Node.js 22
	must.NoError(t, err)
	node = append(node, "node")
	baseline, err := filepath.Abs("testdata/conformance.yml")
	must.NoError(t, err)
	var h *Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer suite") // it has no key
		h.ServeHTTP(w, r)
	}))
	h = New(open{}, "http://"+server.Listener.Addr().String(), "test")
	h.stateless, h.stateful = h.serving(fixtures())
	server.Start()
	defer server.Close()
	defer h.Stop()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			run := exec.CommandContext(t.Context(), node[0], suite, "server", "--url", server.URL+Path,
				"--spec-version", version, "--suite", "all", "--expected-failures", baseline, "-o", t.TempDir())
			run.Env = append(os.Environ(), "NO_COLOR=1")
			out, err := run.CombinedOutput()
			_, summary, _ := strings.Cut(string(out), "=== SUMMARY ===")
			t.Log(summary)
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
