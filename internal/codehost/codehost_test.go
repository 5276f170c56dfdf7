package codehost_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/codehost"
	"humanqa/internal/guard"
)

const canary = "canary-token"

// setAt sets a status at a host that answers so.
func setAt(t *testing.T, provider string, allow guard.Allow, answer http.HandlerFunc) (set func() error) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	hosts := codehost.New(codehost.Config{GitHubURL: server.URL, GitLabURL: server.URL, Allow: allow})
	hosts.SetPages("https://qa.example")
	return func() error {
		to := job.CommitStatus{Provider: provider, Repository: "acme/shop", Commit: "c", Context: "Human QA"}
		return hosts.Set(t.Context(), to, canary, command.StatusUpdate{State: job.CommitSuccess, JobID: "j"})
	}
}

var loopback = guard.Allow{netip.MustParsePrefix("127.0.0.0/8")}

func TestWhatACodeHostAnswersIsFinalOrNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider string
		answer   http.HandlerFunc
		taken    bool
		final    bool
	}{
		"taken":       {job.GitHub, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }, true, false},
		"no such":     {job.GitHub, http.NotFound, false, true},
		"bad token":   {job.GitHub, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, false, true},
		"not allowed": {job.GitHub, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, false, true},
		"limited": {job.GitHub, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "9")
			w.WriteHeader(http.StatusForbidden)
		}, false, false},
		"down": {job.GitHub, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, false, false},
		"has it, told": {job.GitLab, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"message":"Cannot transition status via :succeed from :success"}`, http.StatusBadRequest)
		}, true, false},
		"invalid": {job.GitLab, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{}`, http.StatusBadRequest) }, false, true},
		"moved": {job.GitHub, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the token goes to where a redirect leads")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, false, true},
	} {
		set := setAt(t, c.provider, loopback, c.answer)
		err := set()
		if (err == nil) != c.taken || errors.Is(err, command.ErrStatusRefused) != c.final {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%s: the error shows the token", name)
		}
	}
}

func TestACodeHostInAPrivateNetworkNeedsToBeAllowed(t *testing.T) {
	t.Parallel()
	set := setAt(t, job.GitHub, nil, func(http.ResponseWriter, *http.Request) { t.Error("it is called") })
	if err := set(); !errors.Is(err, command.ErrStatusRefused) || !strings.Contains(err.Error(), "HUMANQA_WEBHOOK_ALLOW") {
		t.Errorf("%v", err)
	}
}

func TestACodeHostThatIsDownIsLeftAlone(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	set := setAt(t, job.GitHub, loopback, func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	for range 20 {
		if err := set(); err == nil || errors.Is(err, command.ErrStatusRefused) {
			t.Fatalf("%v", err)
		}
	}
	if n := calls.Load(); n != 5 {
		t.Errorf("%d calls, want 5", n)
	}
}

// The error is logged with each try, and the repository is a client's word.
func TestTheErrorOfACodeHostThatBreaksOffNamesNoRepository(t *testing.T) {
	t.Parallel()
	for _, provider := range []string{job.GitHub, job.GitLab} {
		err := setAt(t, provider, loopback, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })()
		if err == nil || errors.Is(err, command.ErrStatusRefused) || strings.Contains(err.Error(), "acme") || strings.Contains(err.Error(), "://") {
			t.Errorf("%s: %v", provider, err)
		}
	}
}
