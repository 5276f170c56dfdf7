package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// committing holds where the service sets the verdict after this command has ended.
type committing struct {
	CommitStatus string `placeholder:"NAME" help:"In a pipeline: the service sets a commit status of this name once the tests have ended, so no runner waits. HQA_STATUS_TOKEN holds a token that may write commit statuses."`
}

// commitStatus is the field of a submission.
type commitStatus struct {
	Provider   string `json:"provider,omitempty"`
	Repository string `json:"repository"`
	Commit     string `json:"commit"`
	Context    string `json:"context"`
	Ref        string `json:"ref,omitempty"`
	FailOn     string `json:"failOn,omitempty"`
}

// commitToken is the header with the token. A comparison of repeats leaves it out.
const commitToken = "X-Commit-Token"

// atCommit finds the commit in the pipeline's variables; nil: no status is wanted.
func (c committing) atCommit(a *app, failOn string) (status *commitStatus, token map[string]string, err error) {
	if c.CommitStatus == "" {
		return nil, nil, nil
	}
	secret := a.env("HQA_STATUS_TOKEN")
	actions := a.env("GITHUB_ACTIONS") == "true"
	if secret == "" && !actions {
		secret = a.env("GITHUB_TOKEN")
	}
	switch {
	case secret == "" && actions:
		return nil, nil, usage("--commit-status needs HQA_STATUS_TOKEN, a token that may write commit statuses: " +
			"the token of the workflow ends with its job")
	case secret == "":
		return nil, nil, usage("--commit-status needs HQA_STATUS_TOKEN, a token that may write commit statuses")
	}
	s := &commitStatus{Context: c.CommitStatus, FailOn: failOn}
	switch {
	case a.env("GITHUB_REPOSITORY") != "":
		s.Repository, s.Commit = a.env("GITHUB_REPOSITORY"), a.env("GITHUB_SHA")
		// GITHUB_SHA of a pull request is a temporary merge: the checks stand at the
		// head.
		if head := a.pullRequestHead(); head != "" {
			s.Commit, s.Ref = head, a.env("GITHUB_REF")
		}
	case a.env("GITLAB_CI") == "true":
		s.Provider, s.Repository, s.Commit = "gitlab", a.env("CI_PROJECT_PATH"), a.env("CI_COMMIT_SHA")
		if head := a.env("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"); head != "" { // of a pipeline for merged results
			s.Commit = head
		}
		s.Ref = a.env("CI_MERGE_REQUEST_REF_PATH")
	}
	if s.Repository == "" || s.Commit == "" {
		return nil, nil, usage("--commit-status knows GitHub Actions and GitLab CI: elsewhere set GITHUB_REPOSITORY and GITHUB_SHA")
	}
	return s, map[string]string{commitToken: secret}, nil
}

// pullRequestHead is the newest commit of the pull request that the workflow runs for; empty
// without one.
func (a *app) pullRequestHead() string {
	e, err := a.event()
	if err != nil {
		return ""
	}
	return e.PullRequest.Head.SHA
}

// untouched sets the status of a change that touches no test, because no test will set it
// and a required check must not wait. Only GitHub requires statuses.
func (c committing) untouched(ctx context.Context, a *app) error {
	s, token, err := c.atCommit(a, "")
	if err != nil || s == nil || s.Provider != "" {
		return err
	}
	owner, name, _ := strings.Cut(s.Repository, "/")
	path := "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name) + "/statuses/" + url.PathEscape(s.Commit)
	return github{a.githubBase(), token[commitToken]}.call(ctx, http.MethodPost, path, map[string]string{
		"state": "success", "context": s.Context, "description": "The change touches no test.",
	}, nil)
}
