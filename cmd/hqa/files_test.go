package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

const cartTest = `---
path: /cart
paths: [src/cart/**]
---
# Cart

- [ ] critical: Put a thing into the cart -> The cart counts 1
- [ ] The page opens
`

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// repository is one whose branch main has two tests, on a branch that changed the cart.
func (u *user) repository() {
	u.t.Helper()
	git := func(args ...string) {
		u.t.Helper()
		cmd := exec.CommandContext(u.t.Context(), "git", args...)
		cmd.Dir, cmd.Env = u.dir, append([]string{}, u.environ...)
		cmd.Env = append(cmd.Env, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com",
			"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com")
		if out, err := cmd.CombinedOutput(); err != nil {
			u.t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	write(u.t, u.dir, "qa/cart.md", cartTest)
	write(u.t, u.dir, "qa/sign-in.md", strings.NewReplacer("/cart", "/sign-in", "cart", "session", "Cart", "Sign-in").Replace(cartTest))
	write(u.t, u.dir, "src/cart/cart.js", "broken")
	git("add", ".")
	git("commit", "-qm", "tests")
	git("switch", "-qc", "change")
	write(u.t, u.dir, "src/cart/cart.js", "changed")
	git("commit", "-qam", "cart")
}

// The story of a pipeline, by files only: a failure, the fix, and everything again after the
// service or the client was killed. One run pays once for each test.
func filesStory(t *testing.T, s *qa) {
	key := s.account(100, true)
	u := s.user(t, key, "HQA_RUN_ID=77", "HQA_TARGET_URL=https://example.com")
	u.repository()
	run := []string{"--json", "run", "--changed", "main", "--wait", "--format", "junit", "--output", filepath.Join(u.dir, "junit.xml")}
	submitted := func(p *launched) (s submission) {
		t.Helper()
		must.NoError(t, json.Unmarshal([]byte(p.until(`"type":"submitted"`)), &s))
		return s
	}
	killed := u.launch(run...)
	first := submitted(killed)
	if len(first.JobIDs) != 1 || first.BatchID == "" || first.Replayed {
		t.Fatalf("submitted %+v, want the cart's test alone", first)
	}
	must.NoError(t, killed.cmd.Process.Kill())
	killed.exit()

	again := u.launch(run...)
	if got := submitted(again); got.JobIDs[0] != first.JobIDs[0] || !got.Replayed {
		t.Errorf("started again: %+v, before %+v", got, first)
	}
	again.until(`"status":"pending"`)
	s.kill()
	again.until(`"type":"lost"`)
	s.start()
	s.play(key, first.JobIDs[0], "item-1")
	result := again.until(`"type":"result"`)
	if code := again.exit(); code != exitFailures || !strings.Contains(result, `"file":"qa/cart.md"`) {
		t.Errorf("exit %d: %s", code, result)
	}
	junit, err := os.ReadFile(filepath.Join(u.dir, "junit.xml"))
	must.NoError(t, err)
	if !strings.Contains(string(junit), `tests="2" failures="1"`) || !strings.Contains(string(junit), "<failure message=\"The button does nothing.\"") {
		t.Errorf("JUnit: %s", junit)
	}
	u.must(exitFailures, run...) // the step repeated
	if left := s.credits(key); left != 95 {
		t.Errorf("%d credits are left of 100 after one test", left)
	}

	write(t, u.dir, "src/cart/cart.js", "fixed")
	cutOff := u.launch("--json", "retest", "--wait")
	second := submitted(cutOff)
	must.NoError(t, cutOff.cmd.Process.Kill())
	cutOff.exit()
	retest := u.launch("--json", "retest", "--wait")
	if got := submitted(retest); got.JobIDs[0] != second.JobIDs[0] || !got.Replayed {
		t.Errorf("the retest started again: %+v, before %+v", got, second)
	}
	s.play(key, second.JobIDs[0])
	if code := retest.exit(); code != exitPassed {
		t.Errorf("the fix: exit %d", code)
	}
	u.must(exitPassed, "retest", "--wait")
	u.must(exitPassed, "wait")
	if left := s.credits(key); left != 90 {
		t.Errorf("%d credits are left of 100 after two tests", left)
	}
}

func filesCommands(t *testing.T, s *qa) {
	key := s.account(100, true)
	u := s.user(t, key)
	u.must(exitUsage, "run", "--yes") // there are no files
	u.must(exitPassed, "init", "qa/first.md", "--url", "https://example.com/first")
	u.must(exitUsage, "init", "qa/first.md", "--url", "https://example.com/first")
	write(t, u.dir, "qa/second.md", cartTest)
	u.must(exitPassed, "lint")
	u.must(exitUsage, "run", "--yes") // a path without a URL in front
	r := u.must(exitPassed, "run", "--yes", "--url", "https://example.com")
	if len(r.jobs(t)) != 2 || !strings.Contains(r.err, "2 tests: 10 credits of 100") {
		t.Errorf("run: %+v", r)
	}
	for _, id := range r.jobs(t) {
		s.play(key, id, "item-1")
	}
	u.must(exitFailures, "wait")
	u.must(exitPassed, "init", "qa/of-job.md", "--job", r.jobs(t)[1])
	raw, err := os.ReadFile(filepath.Join(u.dir, "qa/of-job.md"))
	must.NoError(t, err)
	if !strings.Contains(string(raw), "- [ ] critical: Put a thing into the cart -> The cart counts 1\n- [ ] major: The page opens\n") {
		t.Errorf("the job's file:\n%s", raw)
	}
	project, _ := s.call("POST", "/v1/projects", key, map[string]string{"name": "Shop"})["projectId"].(string)
	write(t, u.dir, "qa/second.md", strings.Replace(cartTest, "---\n", "---\nproject: "+project+"\n", 1))
	id := u.must(exitPassed, "run", "--yes", "--url", "https://example.com", "qa/second.md").jobs(t)[0]
	s.play(key, id, "item-1")
	u.must(exitFailures, "wait")
	u.must(exitPassed, "init", "qa/failing.md", "--project", project)
	if raw, err = os.ReadFile(filepath.Join(u.dir, "qa/failing.md")); err != nil || strings.Count(string(raw), "- [ ]") != 1 {
		t.Errorf("the failures' file: %v\n%s", err, raw)
	}
	if r := u.must(exitPassed, "failures", "--project", project); !strings.Contains(r.out, "Put a thing") {
		t.Errorf("failures: %+v", r)
	}
	u.must(exitPassed, "lint")

	write(t, u.dir, "qa/wrong.md", "---\nurl: https://example.com\nsla: 5\n---\n")
	if r := u.must(exitUsage, "lint"); r.out != "qa/wrong.md:3:6: sla must be one of 15, 30, 60\n" {
		t.Errorf("lint: %+v", r)
	}
	left := s.credits(key)
	u.must(exitUsage, "run", "--yes", "--url", "https://example.com")
	if s.credits(key) != left {
		t.Error("a batch with a mistake was charged")
	}
	u.must(exitUsage, "run", "--yes", "--changed", "nowhere", "qa/first.md")
}
