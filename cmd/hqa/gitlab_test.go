package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// component is the job of GitLab's component: the second document of its file.
func component(t *testing.T) (script string, variables map[string]string) {
	t.Helper()
	raw, err := os.ReadFile("../../integrations/gitlab/human-qa.yml")
	must.NoError(t, err)
	_, second, _ := strings.Cut(string(raw), "\n---\n")
	var file map[string]struct {
		Script    []string          `yaml:"script"`
		Variables map[string]string `yaml:"variables"`
	}
	must.NoError(t, yaml.Unmarshal([]byte(second), &file))
	job := file["human-qa"]
	if len(job.Script) != 1 {
		t.Fatalf("the component has the script %q", job.Script)
	}
	return job.Script[0], job.Variables
}

// hqaOnPath is a folder with hqa, for scripts that call it by its name.
func hqaOnPath(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	wrapper := "#!/bin/sh\n" + runAsClient + "=1 exec '" + os.Args[0] + "' \"$@\"\n"
	must.NoError(t, os.WriteFile(filepath.Join(dir, "hqa"), []byte(wrapper), 0o700))
	return dir
}

// gitLabComponent plays the component's script under GitLab's variables: failures, a retry,
// a new branch, a price that is too high, and a pipeline that a newer one interrupts.
func gitLabComponent(t *testing.T, s *qa) {
	key := s.account(100, true)
	u := s.user(t, key)
	u.repository()
	script, variables := component(t)
	for name := range variables {
		if value := map[string]string{
			"HQA_URL": s.url, "HQA_TARGET_URL": "https://example.com", "HQA_MAX_CREDITS": "50", "HQA_TIMEOUT": "1h", "GIT_DEPTH": "0",
		}[name]; value != "" {
			u.environ = append(u.environ, name+"="+value)
		} else {
			t.Errorf("the component has the variable %s, which this test does not know", name)
		}
	}
	u.environ = append(u.environ, "PATH="+hqaOnPath(t)+":"+os.Getenv("PATH"), "GITLAB_CI=true", "CI_SERVER_URL=https://gitlab.example",
		"CI_PROJECT_ID=7", "CI_PROJECT_PATH=acme/shop", "CI_JOB_NAME=human-qa")
	start := func(pipeline string, more ...string) (job *exec.Cmd, out *strings.Builder) {
		job, out = exec.CommandContext(t.Context(), "sh", "-c", script), &strings.Builder{}
		job.Dir, job.Stdout, job.Stderr = u.dir, out, out
		job.Env = append(append(append([]string{}, u.environ...), "CI_PIPELINE_ID="+pipeline), more...)
		must.NoError(t, job.Start())
		return job, out
	}
	ends := func(job *exec.Cmd, out *strings.Builder, want int) {
		t.Helper()
		_ = job.Wait() // the code says it
		if got := job.ProcessState.ExitCode(); got != want {
			t.Fatalf("exit %d, want %d: %s", got, want, out)
		}
	}
	pending := func(n int) (ids []string) {
		t.Helper()
		eventually.True(t, "the tests are submitted", func() bool {
			ids = nil
			jobs, _ := s.call("GET", "/v1/jobs?status=pending", key, nil)["jobs"].([]any)
			for _, j := range jobs {
				id, _ := j.(map[string]any)["id"].(string)
				ids = append(ids, id)
			}
			return len(ids) == n
		})
		return ids
	}
	fork := []string{"CI_COMMIT_BEFORE_SHA=" + strings.Repeat("0", 40), "CI_MERGE_REQUEST_DIFF_BASE_SHA=main"}

	job, out := start("1", fork...) // of a merge request: one of two tests is touched
	s.play(key, pending(1)[0], "item-1")
	ends(job, out, exitFailures)
	if report, err := os.ReadFile(filepath.Join(u.dir, "human-qa.xml")); err != nil || !strings.Contains(string(report), "<failure") {
		t.Errorf("the report of the merge request: %v %s", err, report)
	}
	left := s.credits(key)
	job, out = start("1", append(fork, "CI_JOB_ID=2")...) // the job retried
	ends(job, out, exitFailures)
	if s.credits(key) != left {
		t.Error("a retry is charged")
	}
	job, out = start("2", fork[0]) // the first push of a branch
	for _, id := range pending(2) {
		s.play(key, id)
	}
	ends(job, out, exitPassed)
	job, out = start("3", append(fork, "HQA_MAX_CREDITS=1")...)
	ends(job, out, exitRefused)
	left = s.credits(key)
	job, out = start("4", fork...)
	pending(1)
	must.NoError(t, job.Process.Signal(syscall.SIGTERM)) // a newer pipeline
	ends(job, out, exitRunning)
	if s.credits(key) != left {
		t.Error("an interrupted pipeline is not refunded")
	}
}

// requiredCheckPage tries each line of docs/required-check.md.
func requiredCheckPage(t *testing.T, s *qa) {
	raw, err := os.ReadFile("../../docs/required-check.md")
	must.NoError(t, err)
	key := s.account(100, true)
	u := s.user(t, key, "GITHUB_REPOSITORY=acme/shop", "GITHUB_SHA="+strings.Repeat("9", 40), "HQA_STATUS_TOKEN="+statusToken,
		"PATH="+hqaOnPath(t)+":"+os.Getenv("PATH"))
	u.repository()
	blocks := 0
	for text := string(raw); ; blocks++ {
		_, after, found := strings.Cut(text, "```sh\n")
		if !found {
			break
		}
		block, rest, _ := strings.Cut(after, "```")
		text = rest
		line := exec.CommandContext(t.Context(), "sh", "-ec", strings.Replace(block, "curl ", "curl -sf ", 1))
		line.Dir, line.Env = u.dir, u.environ
		if out, err := line.CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", block, err, out)
		}
	}
	if blocks != 2 {
		t.Errorf("the page has %d blocks", blocks)
	}
	s.hosts.becomes(t, strings.Repeat("9", 40), "pending")
	s.hosts.becomes(t, "1b4f0e9851971998e732078544c96b36c3d01ced", "pending")

	lab := s.user(t, key, "GITLAB_CI=true", "CI_PROJECT_PATH=acme/shop", "CI_COMMIT_SHA="+strings.Repeat("8", 40), "HQA_STATUS_TOKEN="+statusToken,
		"CI_MERGE_REQUEST_REF_PATH=refs/merge-requests/1/head")
	made := lab.must(exitPassed, "test", "https://example.com", "--feature", "sign in", "--yes", "--commit-status", "Human QA").jobs(t)
	if told := s.hosts.becomes(t, strings.Repeat("8", 40), "pending"); told["name"] != "Human QA" {
		t.Errorf("GitLab is told %v", told)
	}
	s.play(key, made[0], "item-1")
	s.hosts.becomes(t, strings.Repeat("8", 40), "failed")
}
