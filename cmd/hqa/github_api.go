package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// githubEvent is the event that started the workflow, with the fields that a comment
// needs.
type githubEvent struct {
	SHA         string `json:"sha"` // of the event status
	PullRequest struct {
		Number int // 0: it has none
		Head   struct{ SHA string }
	} `json:"pull_request"`
}

// event reads it; it is empty outside of GitHub.
func (a *app) event() (e githubEvent, err error) {
	file := a.env("GITHUB_EVENT_PATH")
	if file == "" {
		return e, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(raw, &e)
}

// repository is the API of the repository, and the event in it.
func (a *app) repository() (g github, e githubEvent, err error) {
	e, err = a.event()
	return github{base: a.githubBase() + "/repos/" + a.env("GITHUB_REPOSITORY"), token: a.env("GITHUB_TOKEN")}, e, err
}

// githubBase is the address of GitHub's API.
func (a *app) githubBase() string {
	return strings.TrimRight(cmp.Or(a.env("GITHUB_API_URL"), "https://api.github.com"), "/")
}

// github is the API of GitHub, with the calls that a comment needs.
type github struct{ base, token string }

func (g github) call(ctx context.Context, method, path string, body, out any) error {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, g.base+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+g.token)
	req.Header.Set("Accept", "application/vnd.github+json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		if lost, ok := errors.AsType[*url.Error](err); ok {
			err = lost.Err
		}
		return fmt.Errorf("GitHub cannot be reached: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, answerLimit))
	switch {
	case err != nil:
		return fmt.Errorf("GitHub's answer broke off: %w", err)
	case res.StatusCode == http.StatusForbidden:
		return errors.New("the token may not do this: a comment needs pull-requests: write, a commit status needs statuses: write")
	case res.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("GitHub answered %s to %s %s", res.Status, method, path)
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

// comment is a comment on a pull request.
type comment struct {
	ID          int64                 `json:"id"`
	Body        string                `json:"body"`
	User        struct{ Type string } `json:"user"`
	Association string                `json:"author_association"`
}

// trusted says that a bot or a person with rights in the repository wrote the comment. A
// stranger could copy the marker, and so have false verdicts shown.
func (c comment) trusted() bool {
	switch c.Association {
	case "OWNER", "MEMBER", "COLLABORATOR":
		return true
	}
	return c.User.Type == "Bot"
}

// comments are those that begin with the marker.
func (g github) comments(ctx context.Context, number int, marker string) (found []comment, err error) {
	for at := 1; at <= 10; at++ {
		var list []comment
		if err := g.call(ctx, http.MethodGet, fmt.Sprintf("/issues/%d/comments?per_page=100&page=%d", number, at), nil, &list); err != nil {
			return nil, err
		}
		for _, c := range list {
			if strings.HasPrefix(c.Body, marker) && c.trusted() {
				found = append(found, c)
			}
		}
		if len(list) < 100 {
			break
		}
	}
	return found, nil
}

// pullRequestsOf are the numbers of the pull requests with a commit.
func (g github) pullRequestsOf(ctx context.Context, commit string) (numbers []int, err error) {
	if commit == "" {
		return nil, usage("--refresh needs an event with a pull request or a commit, such as status")
	}
	var list []struct{ Number int }
	err = g.call(ctx, http.MethodGet, "/commits/"+url.PathEscape(commit)+"/pulls", nil, &list)
	for _, p := range list {
		numbers = append(numbers, p.Number)
	}
	return numbers, err
}
