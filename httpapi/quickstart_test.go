package httpapi

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"humanqa/httpapi/openapi"
	"humanqa/internal/signature"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
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

// delivery is what a receiver gets, and whether it is to believe it.
type delivery struct {
	body, at, signatures string
	genuine              bool
}

const deliveryID = "msg_1"

// signed is an entry of webhook-signature, as Standard Webhooks has it.
func signed(secret, at, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(deliveryID + "." + at + "." + body)) // a hash never fails
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// now is a time of a delivery.
func now(ahead time.Duration) string { return strconv.FormatInt(time.Now().Add(ahead).Unix(), 10) }

func vectors(jobID string) map[string]delivery {
	body, at := `{"event":"job.created","jobId":"`+jobID+`","note":"ü \u2028"}`, now(0)
	right, other := signed(quickstartSecret, at, body), signed("another secret of thirty-two chars", at, body)
	old := now(-time.Hour)
	return map[string]delivery{
		"genuine":                   {body, at, right, true},
		"in a rotation, the new":    {body, at, right + " " + other, true},
		"in a rotation, the old":    {body, at, other + " " + right, true},
		"a byte more":               {body + "\n", at, right, false},
		"written again":             {strings.ReplaceAll(body, ":", ": "), at, right, false},
		"with another secret":       {body, at, other, false},
		"in lower case":             {body, at, strings.ToLower(right), false},
		"cut off":                   {body, at, right[:40], false},
		"with something behind":     {body, at, right + "0", false},
		"without a signature":       {body, at, "", false},
		"with letters of others":    {body, at, strings.Repeat("é", 32), false},
		"of another time":           {body, now(-time.Minute), right, false},
		"an hour old":               {body, old, signed(quickstartSecret, old, body), false},
		"at no time":                {body, "soon", signed(quickstartSecret, "soon", body), false},
		"by the other header alone": {body, at, signature.Of([]byte(quickstartSecret), []byte(body)), false},
	}
}

func deliver(t *testing.T, port string, d delivery) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:"+port+"/qa", strings.NewReader(d.body))
	must.NoError(t, err)
	r.Header.Set("webhook-id", deliveryID)
	r.Header.Set("webhook-timestamp", d.at)
	r.Header.Set("webhook-signature", d.signatures)
	answer, err := http.DefaultClient.Do(r)
	must.NoError(t, err)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// running is a program of the quickstart.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr *bytes.Buffer
}

func start(t *testing.T, env []string, command ...string) running {
	t.Helper()
	r := running{t: t, cmd: exec.CommandContext(t.Context(), command[0], command[1:]...), stderr: new(bytes.Buffer)}
	r.cmd.Env, r.cmd.Stderr = env, r.stderr
	stdout, err := r.cmd.StdoutPipe()
	must.NoError(t, err)
	r.lines = bufio.NewScanner(stdout)
	must.NoError(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

func (r running) next(prefix string) string {
	r.t.Helper()
	if !r.lines.Scan() || !strings.HasPrefix(r.lines.Text(), prefix) {
		r.t.Fatalf("it said %q, not %q…\n%s", r.lines.Text(), prefix, r.stderr)
	}
	return strings.TrimPrefix(r.lines.Text(), prefix)
}

// completed tells the program of the job's end, and waits for its own.
func (r running) completed(port, jobID, report string) {
	r.t.Helper()
	body, at := fmt.Sprintf(`{"event":"job.completed","jobId":%q}`, jobID), now(0)
	equal(r.t, deliver(r.t, port, delivery{body: body, at: at, signatures: signed(quickstartSecret, at, body)}), http.StatusNoContent)
	equal(r.t, r.next(""), report)
	r.ends()
}

// ends waits for the program's own end, which is well.
func (r running) ends() {
	r.t.Helper()
	if err := r.cmd.Wait(); err != nil {
		r.t.Errorf("it ended with %v\n%s", err, r.stderr)
	}
}

// Submit, receive, verify, read: each program as the page shows it, against the
// service.
func TestTheQuickstartsProgramsDoWhatTheySay(t *testing.T) {
	t.Parallel()
	for name, run := range map[string][]string{
		"quickstart.mjs": {"node"}, "quickstart.py": {"python3"}, "quickstart.go.txt": {"go"}, "quickstart.cs": {"mono"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			_, key := s.account(100)
			server := httptest.NewServer(s.API)
			t.Cleanup(server.Close)
			file, env := quickstart(t, server.URL, key, name, run[0])
			switch run[0] {
			case "go": // go run would leave its child running
				built := strings.TrimSuffix(file, ".go")
				does(t, ".", "go", "build", "-o", built, file)
				run, file = []string{built}, ""
			case "mono":
				built := file + ".exe"
				does(t, ".", "mcs", "-langversion:latest", "-main:Entry", "-r:System.Net.Http,System.Runtime.Serialization,System.Xml,System.Xml.Linq",
					"-out:"+built, file, "testdata/mono.cs")
				_, port, _ := strings.Cut(process.Address(t), ":")
				file, env = built, append(env, "PORT="+port) // its listener takes no port 0
			}
			if file != "" {
				run = append(run, file)
			}
			p := start(t, env, run...)
			port, jobID := p.next("listening on port "), p.next("submitted ")
			for name, v := range vectors(jobID) {
				if status := deliver(t, port, v); (status == http.StatusNoContent) != v.genuine {
					t.Errorf("%s: %d", name, status)
				}
			}
			s.completesAs(jobID, "The button is dead.")
			p.completed(port, jobID, "fail The button is dead.")

			_, sandbox := s.sandbox()
			p = start(t, append(env, "API_KEY="+sandbox), run...) // nobody but a robot
			port, jobID = p.next("listening on port "), p.next("submitted ")
			p.completed(port, jobID, "pass Works.")

			p = start(t, append(env, "API_KEY=qa_live_wrong"), run...)
			p.next("listening on port ")
			if err := p.cmd.Wait(); err == nil || !strings.Contains(p.stderr.String(), "POST /v1/hosted/test: 401 the key is invalid, expired or revoked\ncheck the key") {
				t.Errorf("a refusal ends it with %v:\n%s", err, p.stderr)
			}
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
	s := shared(t)
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
		if out, err := run("verify", body, deliveryID, v.at, v.signatures); (err == nil) != v.genuine {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
	if out, err := run("report", jobID); err == nil || !strings.Contains(out, "the report exists once the job is completed") {
		t.Errorf("there is no report yet: %v %s", err, out)
	}
	s.completesAs(jobID, "The button is dead.")
	if out, err := run("report", jobID); err != nil || !strings.Contains(out, `"overallStatus":"fail"`) {
		t.Errorf("%v: %s", err, out)
	}
	_, sandbox := s.sandbox()
	env = append(env, "API_KEY="+sandbox)
	if out, err := run(); err != nil || !strings.Contains(out, `"overallStatus":"pass"`) || !strings.Contains(out, `"checkerSummary":"Works."`) {
		t.Errorf("%v: %s", err, out)
	}
	env = append(env, "API_KEY=qa_live_wrong")
	if out, err := run(); err == nil || !strings.Contains(out, "check the key, or create a new one") {
		t.Errorf("%v: %s", err, out)
	}
}
