package httpapi

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"humanqa/internal/testing/must"
)

var (
	packagesDir = flag.String("packages", "", "the folder of the client packages, built; see make contract")
	toolsDir    = flag.String("clients", "", "the folder of what generators made of the API's document; see make contract")
)

const clientsDir = "../integrations/clients"

// installed is a folder with the client package of each language, and the commands that run
// an example there. Nothing is fetched: the packages need no other.
func installed(t *testing.T) (dir, wheel string, run func(example string) map[string][]string) {
	t.Helper()
	dir = t.TempDir()
	one := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(*packagesDir, pattern))
		must.NoError(t, err)
		if len(found) != 1 {
			t.Fatalf("%s: %v", pattern, found)
		}
		return found[0]
	}
	does(t, dir, "npm", "install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", one("humanqa-*.tgz"))
	does(t, dir, "cp", "-R", abs(t, clientsDir+"/typescript/examples"), abs(t, clientsDir+"/typescript/tests"), dir)
	wheel = one("humanqa-*-py3-none-any.whl")
	return dir, wheel, func(example string) map[string][]string {
		program := filepath.Join(dir, example)
		does(t, ".", "go", "build", "-o", program, clientsDir+"/go/examples/"+example)
		python := map[string]string{"first-test": "first_test.py", "receiver": "receiver.py"}[example]
		return map[string][]string{
			"Go": {program}, "TypeScript": {"node", filepath.Join(dir, "examples", example+".mjs")},
			"Python": {"env", "PYTHONPATH=" + wheel, "python3", clientsDir + "/python/examples/" + python},
		}
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	whole, err := filepath.Abs(path)
	must.NoError(t, err)
	return whole
}

func does(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// Each program submits, claims, gives verdicts, completes, and reads report and history.
func TestGeneratedClientsPlayTheMainJob(t *testing.T) {
	t.Parallel()
	if *toolsDir == "" {
		t.Skip("make contract runs it, behind the generators")
	}
	generated := filepath.Join(*toolsDir, "generated")
	for generator, run := range map[string][]string{
		"@hey-api/openapi-ts": {"node", generated + "/js/play/hey-api.mjs"},
		"orval":               {"node", generated + "/js/play/orval.mjs"},
		"oapi-codegen":        {generated + "/play/oapi-codegen"},
		"ogen":                {generated + "/play/ogen"},
	} {
		t.Run(generator, func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			_, key := s.account(100)
			server := httptest.NewServer(s.API)
			t.Cleanup(server.Close)
			p := start(t, append(os.Environ(), "BASE_URL="+server.URL, "API_KEY="+key, "CHECKER_KEY="+s.checker(), "PROJECT_ID="+s.project(key, `{"name":"Shop"}`)), run...)
			equal(t, p.next(""), "fail 1 1 One of two works.")
			equal(t, p.next(""), "1 The button works")
			p.ends()
		})
	}
}

// The packages are installed as a client's machine has them, and each does the first test of
// README.md against the service, and receives webhooks through a rotation of their secret.
func TestTheClientPackagesDoWhatTheirExamplesSay(t *testing.T) {
	t.Parallel()
	if *packagesDir == "" {
		t.Skip("make contract runs it")
	}
	dir, wheel, commands := installed(t)
	t.Run("the tests of the package in TypeScript", func(t *testing.T) {
		t.Parallel()
		does(t, dir, "node", "--test", filepath.Join(dir, "tests/client.test.mjs"))
	})
	t.Run("the tests of the package in Python", func(t *testing.T) {
		t.Parallel()
		does(t, ".", "env", "PYTHONPATH="+wheel, "python3", clientsDir+"/python/tests/test_humanqa.py")
	})
	for language, run := range commands("first-test") {
		t.Run("a first test in "+language, func(t *testing.T) {
			t.Parallel()
			s := shared(t)
			_, key := s.account(100)
			server := httptest.NewServer(s.API)
			t.Cleanup(server.Close)
			env := append(os.Environ(), "BASE_URL="+server.URL, "API_KEY="+key)
			p := start(t, env, run...)
			jobID := p.next("submitted ")
			s.completesAs(jobID, "The button is dead.")
			equal(t, p.next(""), "fail The button is dead.")
			equal(t, p.next("tested "), jobID+" Sign-up")
			p.ends()

			_, sandbox := s.sandbox()
			p = start(t, append(env, "API_KEY="+sandbox), run...)
			jobID = p.next("submitted ")
			equal(t, p.next(""), "pass Works.")
			equal(t, p.next("tested "), jobID+" Sign-up")
			p.ends()

			p = start(t, append(env, "API_KEY=qa_live_wrong"), run...)
			if err := p.cmd.Wait(); err == nil {
				t.Error("a refusal ends it well")
			}
		})
	}
	for language, run := range commands("receiver") {
		t.Run("a receiver in "+language, func(t *testing.T) {
			t.Parallel()
			p := start(t, append(os.Environ(), "PORT=0", "WEBHOOK_SECRET="+quickstartSecret), run...)
			port := p.next("listening on port ")
			for name, v := range vectors("job-1") {
				if status := deliver(t, port, v); (status == http.StatusNoContent) != v.genuine {
					t.Errorf("%s: %d", name, status)
				} else if v.genuine {
					equal(t, p.next(""), "job.created")
				}
			}
			body, at := `{"event":"job.completed","jobId":"job-1","data":{"overallStatus":"fail"}}`, now(0)
			deliver(t, port, delivery{body: body, at: at, signatures: signed(quickstartSecret, at, body)})
			equal(t, p.next(""), "job-1 fail")
		})
	}
}
