package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/httpapi/openapi"
	"humanqa/internal/must"
	"humanqa/webhooks"
)

const quickstartSecret = "0123456789abcdef0123456789abcdef"

// quickstart gives a program of the reference page, in a folder of its own, and
// the environment it wants. The test is skipped without what runs it.
func quickstart(t *testing.T, base, key, name string, needs ...string) (file string, env []string) {
	t.Helper()
	for _, program := range needs {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here", program)
		}
	}
	file = filepath.Join(t.TempDir(), strings.TrimSuffix(name, ".txt"))
	must.NoError(t, os.WriteFile(file, openapi.ViewerFiles()[name].Body, 0o600))
	return file, append(os.Environ(), "BASE_URL="+base, "API_KEY="+key, "PORT=0",
		"WEBHOOK_URL=https://hooks.example.com/qa", "WEBHOOK_SECRET="+quickstartSecret)
}

// vectors are deliveries and whether a receiver is to believe them.
func vectors(jobID string) map[string]struct {
	body, signature string
	genuine         bool
} {
	type vector = struct {
		body, signature string
		genuine         bool
	}
	body := `{"event":"job.created","jobId":"` + jobID + `","note":"ü \u2028"}`
	signed := func(secret, body string) string { return webhooks.Signature([]byte(secret), []byte(body)) }
	right := signed(quickstartSecret, body)
	return map[string]vector{
		"genuine":                {body, right, true},
		"a byte more":            {body + "\n", right, false},
		"written again":          {strings.ReplaceAll(body, ":", ": "), right, false},
		"with another secret":    {body, signed("another secret of thirty-two chars", body), false},
		"in upper case":          {body, strings.ToUpper(right), false},
		"cut off":                {body, right[:63], false},
		"with something behind":  {body, right + "0", false},
		"without a signature":    {body, "", false},
		"with letters of others": {body, strings.Repeat("é", 32), false},
	}
}

func deliver(t *testing.T, port, body, signature string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+port+"/qa", strings.NewReader(body))
	must.NoError(t, err)
	r.Header.Set("X-Service-Signature", signature)
	answer, err := http.DefaultClient.Do(r)
	must.NoError(t, err)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// Submit, receive, verify, read: each program as the page shows it, against the
// service.
func TestTheQuickstartsProgramsDoWhatTheySay(t *testing.T) {
	t.Parallel()
	for name, run := range map[string][]string{
		"quickstart.mjs": {"node"}, "quickstart.py": {"python3"}, "quickstart.go.txt": {"go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			_, key := s.account(100)
			server := httptest.NewServer(s.API)
			t.Cleanup(server.Close)
			file, env := quickstart(t, server.URL, key, name, run[0])
			if run[0] == "go" { // go run would leave its child running
				built := strings.TrimSuffix(file, ".go")
				if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", built, file).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				run, file = []string{built}, ""
			}
			cmd := exec.CommandContext(t.Context(), run[0])
			if file != "" {
				cmd.Args = append(cmd.Args, file)
			}
			cmd.Env = env
			var failures bytes.Buffer
			cmd.Stderr = &failures
			stdout, err := cmd.StdoutPipe()
			must.NoError(t, err)
			must.NoError(t, cmd.Start())
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			lines := bufio.NewScanner(stdout)
			next := func(prefix string) string {
				t.Helper()
				if !lines.Scan() || !strings.HasPrefix(lines.Text(), prefix) {
					t.Fatalf("it said %q, not %q…\n%s", lines.Text(), prefix, &failures)
				}
				return strings.TrimPrefix(lines.Text(), prefix)
			}
			port, jobID := next("listening on port "), next("submitted ")
			for name, v := range vectors(jobID) {
				if status := deliver(t, port, v.body, v.signature); (status == http.StatusNoContent) != v.genuine {
					t.Errorf("%s: %d", name, status)
				}
			}
			s.completesAs(jobID, "The button is dead.")
			body := fmt.Sprintf(`{"event":"job.completed","jobId":%q}`, jobID)
			equal(t, deliver(t, port, body, webhooks.Signature([]byte(quickstartSecret), []byte(body))), http.StatusNoContent)
			equal(t, next(""), "fail The button is dead.")
		})
	}
}

// completesAs has a checker fail every item of the job.
func (s *service) completesAs(jobID, summary string) {
	s.t.Helper()
	w := s.claims(s.checker(), jobID)
	for n := range w.items {
		w.check(n, fails)
	}
	w.completes(summary)
}

func TestTheQuickstartsShellScriptDoesWhatItSays(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	server := httptest.NewServer(s.API)
	t.Cleanup(server.Close)
	file, env := quickstart(t, server.URL, key, "quickstart.sh", "sh", "curl", "openssl")
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{file}, args...)...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	submitted, err := run("submit")
	_, after, found := strings.Cut(submitted, `"jobId":"`)
	jobID, _, _ := strings.Cut(after, `"`)
	if err != nil || !found {
		t.Fatalf("%v: %s", err, submitted)
	}
	for name, v := range vectors(jobID) {
		body := filepath.Join(t.TempDir(), "body")
		must.NoError(t, os.WriteFile(body, []byte(v.body), 0o600))
		if out, err := run("verify", body, v.signature); (err == nil) != v.genuine {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
	if out, err := run("report", jobID); err == nil {
		t.Errorf("there is no report yet: %s", out)
	}
	s.completesAs(jobID, "The button is dead.")
	if out, err := run("report", jobID); err != nil || !strings.Contains(out, `"overallStatus":"fail"`) {
		t.Errorf("%v: %s", err, out)
	}
}
