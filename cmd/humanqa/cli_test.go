package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/models"
	"humanqa/domain/oversight"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

func accountCommands(t *testing.T, s *instance) {
	var account struct{ AccountID, APIKey string }
	s.cli(&account, "account", "create", "--name", "Acme", "--credits", "12", "--credits-expire", "720h")
	credits := s.call(http.StatusOK, "GET", "/v1/credits", account.APIKey, nil)
	if credits.number("available") != 12 || !strings.Contains(string(credits.body), "expiresAt") {
		t.Errorf("credits %s, want 12 that expire", credits.body)
	}
	var sandbox struct{ AccountID, APIKey string }
	s.cli(&sandbox, "account", "create", "--name", "Box", "--sandbox")
	if !strings.HasPrefix(account.APIKey, "qa_live_") || !strings.HasPrefix(sandbox.APIKey, "qa_test_") {
		t.Errorf("keys %.8s and %.8s", account.APIKey, sandbox.APIKey)
	}

	var status struct{ AccountID, Status string }
	s.cli(&status, "account", "suspend", "--account", account.AccountID)
	if status.AccountID != account.AccountID || status.Status != "suspended" {
		t.Errorf("suspend printed %+v", status)
	}
	s.call(http.StatusForbidden, "GET", "/v1/credits", account.APIKey, nil)
	s.cli(&status, "account", "reinstate", "--account", account.AccountID)
	if status.Status != "active" {
		t.Errorf("reinstate printed %+v", status)
	}
	s.call(http.StatusOK, "GET", "/v1/credits", account.APIKey, nil)
}

func keyCommands(t *testing.T, s *instance) {
	id, _ := s.newAccount(5)
	var key struct{ KeyID, APIKey string }
	s.cli(&key, "key", "create", "--account", id, "--scope", "read", "--expires", "24h")
	s.call(http.StatusOK, "GET", "/v1/credits", key.APIKey, nil)
	s.call(http.StatusForbidden, "POST", "/v1/projects", key.APIKey, map[string]string{"name": "P"})
	var revoked struct{ KeyID, Status string }
	s.cli(&revoked, "key", "revoke", "--key", key.KeyID)
	if revoked.KeyID != key.KeyID || revoked.Status != "revoked" {
		t.Errorf("revoke printed %+v", revoked)
	}
	s.call(http.StatusUnauthorized, "GET", "/v1/credits", key.APIKey, nil)

	other, otherKey := s.newAccount(0)
	project := s.call(http.StatusCreated, "POST", "/v1/projects", otherKey, map[string]string{"name": "P"}).text("projectId")
	if _, stderr, err := s.tryCLI("key", "create", "--account", id, "--project", project); exitCode(err) != exitFailed || stderr != "humanqa: project not found: check the id\n" {
		t.Errorf("a key for another account's project: %v %q", err, stderr)
	}
	s.cli(&key, "key", "create", "--account", other, "--project", project)
	s.call(http.StatusOK, "GET", "/v1/projects/"+project, key.APIKey, nil)
}

func creditsCommands(t *testing.T, s *instance) {
	id, key := s.newAccount(1)
	var granted struct {
		AccountID string
		Available int
	}
	s.cli(&granted, "credits", "grant", "--account", id, "--amount", "41", "--expires", "1h")
	if granted.AccountID != id || granted.Available != 42 {
		t.Errorf("grant printed %+v", granted)
	}
	if credits := s.call(http.StatusOK, "GET", "/v1/credits", key, nil); credits.number("available") != 42 {
		t.Errorf("credits %s, want 42", credits.body)
	}

	// A sandbox counts from its own time, which may be far ahead.
	box, boxKey := s.newSandbox(1)
	s.advance(boxKey, 48*3600)
	s.cli(&granted, "credits", "grant", "--account", box, "--amount", "41", "--expires", "1h")
	if granted.AccountID != box || granted.Available != 42 {
		t.Errorf("grant to the sandbox printed %+v", granted)
	}
	if credits := s.call(http.StatusOK, "GET", "/v1/credits", boxKey, nil); credits.number("available") != 42 || len(credits.list("expiringCredits")) != 1 {
		t.Errorf("the sandbox's credits %s, want 42", credits.body)
	}
	s.advance(boxKey, 3601)
	if credits := s.call(http.StatusOK, "GET", "/v1/credits", boxKey, nil); credits.number("available") != 1 {
		t.Errorf("the sandbox's credits %s, want 1 after the others have expired", credits.body)
	}
}

func checkerCommands(t *testing.T, s *instance) {
	var checker struct{ CheckerID, CheckerKey string }
	s.cli(&checker, "checker", "create", "--name", "Ann")
	if checker.CheckerID == "" || !strings.HasPrefix(checker.CheckerKey, "qc_") {
		t.Errorf("checker create printed %+v", checker)
	}
	s.call(http.StatusOK, "GET", "/v1/checker/queue", checker.CheckerKey, nil)
}

func jobCommands(t *testing.T, s *instance) {
	_, key := s.newAccount(5)
	job := s.call(http.StatusCreated, "POST", "/v1/jobs", key, map[string]string{
		"url": "https://example.com", "title": "T", "description": "D", "jobType": "custom",
	}).text("jobId")
	var cancelled struct {
		JobID, Status                     string
		CreditsRefunded, CreditsRemaining int
	}
	for range 2 { // a repeat refunds nothing more
		s.cli(&cancelled, "job", "cancel", "--job", job)
		if cancelled.JobID != job || cancelled.Status != "cancelled" || cancelled.CreditsRefunded != 5 || cancelled.CreditsRemaining != 5 {
			t.Errorf("cancel printed %+v", cancelled)
		}
	}
	if got := s.call(http.StatusOK, "GET", "/v1/jobs/"+job, key, nil).text("status"); got != "cancelled" {
		t.Errorf("the job is %s", got)
	}

	claimed := s.call(http.StatusCreated, "POST", "/v1/jobs", key, map[string]string{
		"url": "https://example.com", "title": "T", "description": "D", "jobType": "custom",
	}).text("jobId")
	var checker struct{ CheckerKey string }
	s.cli(&checker, "checker", "create", "--name", "Ann")
	s.call(http.StatusCreated, "POST", "/v1/checker/claims", checker.CheckerKey, map[string]string{"jobId": claimed})
	failed := cancelled
	for range 2 {
		s.cli(&failed, "job", "untestable", "--job", claimed)
		if failed.JobID != claimed || failed.Status != "failed" || failed.CreditsRefunded != 5 || failed.CreditsRemaining != 5 {
			t.Errorf("untestable printed %+v", failed)
		}
	}
	if got := s.call(http.StatusOK, "GET", "/v1/jobs/"+claimed, key, nil).text("status"); got != "failed" {
		t.Errorf("the job is %s", got)
	}
}

func recordedCommands(t *testing.T, s *instance) {
	var opened struct{ AccountID, APIKey string }
	var key struct{ KeyID string }
	by := func(into any, args ...string) {
		s.cli(into, append(args, "--by", "ann", "--reason", "They asked us to")...)
	}
	by(&opened, "account", "create", "--name", "Acme", "--credits", "12")
	by(&key, "key", "create", "--account", opened.AccountID)
	by(nil, "key", "revoke", "--key", key.KeyID)
	by(nil, "checker", "create", "--name", "Bea")
	job := s.call(http.StatusCreated, "POST", "/v1/jobs", opened.APIKey, map[string]string{
		"url": "https://example.com", "title": "T", "description": "D", "jobType": "custom",
	}).text("jobId")
	by(nil, "job", "cancel", "--job", job)
	project := s.call(http.StatusCreated, "POST", "/v1/projects", opened.APIKey, map[string]string{
		"name": "P", "webhookUrl": "https://example.com/hook",
	}).text("projectId")
	by(nil, "project", "secret", "--project", project)
	if _, stderr, err := s.tryCLI("account", "suspend", "--account", "nobody", "--by", "ann", "--reason", "They asked us to"); err == nil {
		t.Errorf("nobody's account is suspended: %s", stderr)
	}

	var told []string
	for _, e := range s.replayed("operator-cli:ann") {
		var acted oversight.Acted
		must.NoError(t, json.Unmarshal(e.Data, &acted))
		told = append(told, cmp.Or(string(acted.Act), e.Type))
	}
	if want := []string{
		"open_account", "issue_key", "revoke_key", "create_checker", "cancel_job", "look", "suspend_account", "operator.refused",
	}; !slices.Equal(told, want) {
		t.Errorf("on record are %v, want %v", told, want)
	}
}

type listing struct {
	Head        string
	Projections []models.Listed
}

func (l listing) generation(name string) int {
	newest := 0
	for _, p := range l.Projections {
		if p.Name == name && p.Serving {
			newest = max(newest, p.Generation)
		}
	}
	return newest
}

func projectionCommands(t *testing.T, s *instance) {
	var before listing
	s.cli(&before, "projections", "list")
	for _, name := range []string{"jobs", "credits", "projects", "access", "timers", "webhooks"} {
		if before.generation(name) == 0 {
			t.Errorf("%s is not listed in %+v", name, before)
		}
	}
	process := fmt.Sprintf(":%d/", os.Getpid())
	for _, l := range before.Projections {
		if !strings.Contains(l.Owner, process) {
			t.Errorf("%s is run by %q, want the service's process %s", l.Name, l.Owner, process)
		}
	}
	var now listing
	s.cli(nil, "projections", "rebuild", "jobs")
	if stdout, stderr, err := s.tryCLI("projections", "rebuild", "--all"); err != nil || strings.Count(stdout, ": rebuilt, it serves from now on\n") != len(rebuildable()) {
		t.Errorf("rebuild --all: %v %s\n%s", err, stderr, stdout)
	}
	if stdout, stderr, err := s.tryCLI("projections", "rebuild", "--all", "--dry-run"); err != nil || !strings.HasSuffix(stdout, "audit: 0 rows are not what the log says\n") {
		t.Errorf("rebuild --all --dry-run: %v %s\n%s", err, stderr, stdout)
	}
	if s.cli(&now, "projections", "list"); now.generation("jobs") <= before.generation("jobs") {
		t.Error("the new generation of jobs does not serve although the command has ended")
	}
	s.cli(nil, "projections", "rebuild", "--detach", "credits")
	eventually.Within(t, eventually.Patience, func() error {
		s.cli(&now, "projections", "list")
		if now.generation("credits") <= before.generation("credits") {
			return errors.New("the new generation does not serve yet")
		}
		return nil
	})
	for _, args := range [][]string{
		{"projections", "retry", "jobs"},
		{"projections", "skip", "jobs", "--reason", "why not"},
		{"projections", "retry", "webhooks"},
	} {
		if _, stderr, err := s.tryCLI(args...); exitCode(err) != exitFailed || !strings.Contains(stderr, "not stopped") {
			t.Errorf("%v: %v %s", args, err, stderr)
		}
	}
}

func mistakes(t *testing.T, s *instance) {
	id, _ := s.newAccount(1)
	var exit *exec.ExitError // of a process, as a shell sees it
	if err := s.command(t.Context(), "frob").Run(); !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
		t.Errorf("humanqa frob: %v, want status %d", err, exitUsage)
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, "unexpected argument frob", []string{"frob"}},
		{exitUsage, "--name", []string{"account", "create"}},
		{exitUsage, "--credits must not be negative", []string{"account", "create", "--name", "N", "--credits=-1"}},
		{exitUsage, "--credits-expire needs --credits", []string{"account", "create", "--name", "N", "--credits-expire", "1h"}},
		{exitUsage, "--credits-expire: it must be more than 0", []string{"account", "create", "--name", "N", "--credits", "1", "--credits-expire", "0"}},
		{exitUsage, "--amount", []string{"credits", "grant", "--account", id, "--amount", "0"}},
		{exitUsage, "--expires: it must be more than 0", []string{"credits", "grant", "--account", id, "--amount", "1", "--expires", "0"}},
		{exitUsage, "--expires: it must be more than 0", []string{"key", "create", "--account", id, "--expires=-1h"}},
		{exitUsage, "or ever to keep everything", []string{"evidence", "keep", "--account", id, "--evidence-days", "0", "--reason", "r"}},
		{exitUsage, "--scope", []string{"key", "create", "--account", id, "--scope", "root"}},
		{exitUsage, "wants the key's id", []string{"key", "revoke", "--key", "qa_live_x"}},
		{exitUsage, "is no read model: there are jobs", []string{"projections", "rebuild", "webhooks"}},
		{exitUsage, "name one read model, or --all", []string{"projections", "rebuild"}},
		{exitUsage, "this binary runs jobs", []string{"projections", "drop", "jobs"}},
		{exitFailed, "there is no projection gone", []string{"projections", "drop", "gone"}},
		{exitUsage, "--reason", []string{"projections", "skip", "jobs"}},
		{exitUsage, "is no role", []string{"serve", "--roles", "janitor"}},
		{exitFailed, "account not found: check the id", []string{"account", "suspend", "--account", "nobody"}},
		{exitFailed, "account not found: check the id", []string{"credits", "grant", "--account", "nobody", "--amount", "1"}},
		{exitFailed, "account not found: check the id", []string{"key", "create", "--account", "nobody"}},
		{exitFailed, "job not found: check the id", []string{"job", "cancel", "--job", "nothing"}},
		{exitFailed, "job not found: check the id", []string{"job", "untestable", "--job", "nothing"}},
		{exitFailed, "project not found: check the id", []string{"project", "secret", "--project", "nothing"}},
		{exitFailed, "stream job-nothing not found: a stream's name begins", []string{"replay", "job-nothing"}},
		{exitFailed, "job streams of account nobody not found", []string{"replay", "--account", "nobody"}},
		{exitUsage, "neither a time", []string{"replay", "job-1", "--until", "yesterday"}},
		{exitUsage, "name one stream", []string{"replay"}},
	} {
		stdout, stderr, err := s.tryCLI(c.args...)
		line := regexp.MustCompile(`^humanqa: [^A-Z\n][^\n]*\n$`)
		if exitCode(err) != c.code || !strings.Contains(stderr, c.want) || !line.MatchString(stderr) || stdout != "" {
			t.Errorf("humanqa %s: %d, %q %q; want %d and one line with %q",
				strings.Join(c.args, " "), exitCode(err), stdout, stderr, c.code, c.want)
		}
	}
}

func exitCode(err error) int {
	var exit exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &exit):
		return int(exit)
	}
	return -1
}

// A data directory is private, and commands work on it while its service is stopped.
func TestADataDirectoryIsPrivateAndCanBeUsedWithoutItsService(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	s := p.launchAs(p.command(context.Background(), "serve", "--demo")) // it makes all of it
	s.waitReady()
	for name, want := range map[string]os.FileMode{
		".":                  os.ModeDir | 0o700,
		"demo.json":          0o600,
		"pages-url":          0o600,
		"master-keyset.json": 0o600,
		"eventstore.sock":    os.ModeSocket | 0o600,
	} {
		if info, err := os.Stat(filepath.Join(p.dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info, err, want)
		}
	}
	first, err := service.ReadDemo(p.dir)
	must.NoError(t, err)
	if first.BaseURL != "http://"+p.addr || p.call(http.StatusOK, "GET", "/v1/credits", first.APIKey, nil).number("available") != service.DemoCredits {
		t.Errorf("demo file %+v", first)
	}
	p.call(http.StatusOK, "GET", "/v1/checker/queue", first.CheckerKey, nil)
	t.Run("a Postgres that cannot be used says what to do", func(t *testing.T) { unusablePostgres(t, s.in(t)) })
	s.stop()

	account, key := p.newAccount(20)
	var out struct {
		AccountID string
		Available int
	}
	p.cli(&out, "credits", "grant", "--account", account, "--amount", "5")
	if out.Available != 25 {
		t.Errorf("available: %d, want 25", out.Available)
	}

	s = p.start("--demo")
	if r := s.call(http.StatusOK, "GET", "/v1/credits", key, nil); r.number("available") != 25 {
		t.Errorf("credits: %s", r.body)
	}
	if second, err := service.ReadDemo(p.dir); err != nil || second != first {
		t.Errorf("the second start wrote %+v, %v", second, err)
	}
	p.fsck()
	s.stop()
}
