// Package codehost sets commit statuses at GitHub and GitLab.
//
// The address of each host is the operator's setting, never a client's. A token goes to
// that address and nowhere else: no redirect is followed. Addresses are checked as they are
// dialled (internal/guard), like those of webhooks. A host that failed several times in a
// row is left alone for a while.
package codehost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/guard"
)

const (
	// callTime bounds one request.
	callTime = 15 * time.Second
	// answerLimit is how much of an answer is read, in bytes.
	answerLimit = 16 << 10
	// restAfter is how many requests in a row a host may fail, and restTime how long it
	// is not asked then.
	restAfter = 5
	restTime  = 30 * time.Second
)

// Config names the hosts.
type Config struct {
	GitHubURL, GitLabURL string // of their APIs, without a slash at the end
	// Allow are the private networks in which a host may be.
	Allow guard.Allow
}

// Hosts sets commit statuses (command.Statuses). It is safe for concurrent use.
type Hosts struct {
	base   map[string]string // by provider
	rest   map[string]*gobreaker.CircuitBreaker[struct{}]
	client *http.Client
	pages  atomic.Pointer[string] // the service's own URL
}

var _ command.Statuses = (*Hosts)(nil)

// New prepares the hosts; nothing is sent before SetPages.
func New(cfg Config) *Hosts {
	h := &Hosts{
		base:   map[string]string{job.GitHub: cfg.GitHubURL, job.GitLab: cfg.GitLabURL},
		rest:   map[string]*gobreaker.CircuitBreaker[struct{}]{},
		client: guard.Client(cfg.Allow, callTime),
	}
	for provider := range h.base {
		h.rest[provider] = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
			Timeout:     restTime,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= restAfter },
			// A refusal shows that the host is up. A stop of the service says nothing.
			IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, command.ErrStatusRefused) },
			IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
		})
	}
	return h
}

// SetPages names the service's own URL, in front of the pages that statuses link to.
func (h *Hosts) SetPages(baseURL string) { h.pages.Store(&baseURL) }

// Set implements command.Statuses.
func (h *Hosts) Set(ctx context.Context, to job.CommitStatus, token string, is command.StatusUpdate) error {
	pages := h.pages.Load()
	if pages == nil {
		return errors.New("the service's own URL is not known yet")
	}
	page := announce.ReportPage(*pages, is.JobID)
	if is.BatchID != "" {
		page = announce.BatchPage(*pages, is.BatchID)
	}
	req, err := h.request(ctx, to, token, is, page)
	if err != nil {
		return err
	}
	_, err = h.rest[to.Provider].Execute(func() (struct{}, error) { return struct{}{}, h.send(req, to.Provider) })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return fmt.Errorf("%s failed several times in a row and is left alone for a while", to.Provider)
	}
	return err
}

// request is the call that sets the status, in the provider's form.
func (h *Hosts) request(
	ctx context.Context, to job.CommitStatus, token string, is command.StatusUpdate, page string,
) (*http.Request, error) {
	var path string
	body := map[string]string{"target_url": page, "description": is.Description}
	header := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"humanqa"}}
	switch to.Provider {
	case job.GitHub:
		owner, name, _ := strings.Cut(to.Repository, "/")
		path = "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name) + "/statuses/" + url.PathEscape(to.Commit)
		body["state"], body["context"] = string(is.State), to.Context
		header.Set("Authorization", "Bearer "+token)
		header.Set("Accept", "application/vnd.github+json")
		header.Set("X-GitHub-Api-Version", "2022-11-28")
	case job.GitLab:
		path = "/projects/" + url.PathEscape(to.Repository) + "/statuses/" + url.PathEscape(to.Commit)
		body["state"], body["name"] = gitLabStates[is.State], to.Context
		header.Set("PRIVATE-TOKEN", token)
	default:
		return nil, fmt.Errorf("%w: %s is no known code host", command.ErrStatusRefused, to.Provider)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.base[to.Provider]+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header = header
	return req, nil
}

// gitLabStates are the states in GitLab's words, which knows no error.
var gitLabStates = map[job.CommitState]string{
	job.CommitPending: "pending", job.CommitSuccess: "success", job.CommitFailure: "failed", job.CommitError: "canceled",
}

// send makes the request. Its errors quote nothing that the host said.
func (h *Hosts) send(req *http.Request, provider string) error {
	resp, err := h.client.Do(req)
	if err != nil {
		if errors.Is(err, guard.ErrBlocked) {
			return fmt.Errorf("%w: the address of %s is private: set HUMANQA_WEBHOOK_ALLOW", command.ErrStatusRefused, provider)
		}
		return fmt.Errorf("call %s: %w", provider, guard.Unquoted(err))
	}
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, answerLimit)) // a part is enough
	_ = resp.Body.Close()                                           // only read
	refused := func(why string) error { return fmt.Errorf("%w: %s", command.ErrStatusRefused, why) }
	switch code := resp.StatusCode; {
	case code >= 200 && code <= 299:
		return nil
	case provider == job.GitLab && code == http.StatusBadRequest && bytes.Contains(answer, []byte("Cannot transition status")):
		return nil // it has that state already
	case code == http.StatusUnauthorized:
		return refused("the token is unknown or expired (401)")
	case code == http.StatusForbidden && (resp.Header.Get("X-RateLimit-Remaining") == "0" || resp.Header.Get("Retry-After") != ""):
		return fmt.Errorf("%s limits requests", provider)
	case code == http.StatusForbidden:
		return refused("the token may not write commit statuses of this repository (403)")
	case code == http.StatusNotFound:
		return refused("the token sees no such repository or commit (404)")
	case code >= 300 && code <= 399:
		return refused(fmt.Sprintf("the repository has moved (%d): use its new name", code))
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		return fmt.Errorf("%s answered %d", provider, code)
	default:
		return refused(fmt.Sprintf("the status is not taken (%d)", code))
	}
}
