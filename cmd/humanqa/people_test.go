package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// Links that a terminal prints lead in, as often as somebody loses their way.
func linksStory(t *testing.T, p *instance) {
	var account struct {
		AccountID string `json:"accountId"`
	}
	p.cli(&account, "account", "create", "--name", "Acme")
	var first, second personLink
	p.cli(&first, "person", "invite", "--account", account.AccountID, "--role", "owner", "--name", "Ann")
	page := func(link string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(link, "localhost", "127.0.0.1", 1), nil)
		must.NoError(t, err)
		r.Host = "localhost"
		got, err := http.DefaultClient.Do(r)
		must.NoError(t, err)
		defer func() { _ = got.Body.Close() }()
		body, err := io.ReadAll(got.Body)
		must.NoError(t, err)
		return got.StatusCode, string(body)
	}
	if status, body := page(first.Link); status != 200 || !strings.Contains(body, "You are invited as an owner of Acme") {
		t.Errorf("the first link: %d", status)
	}
	p.cli(&second, "person", "link", "--person", first.PersonID)
	if second.PersonID != first.PersonID || second.Link == first.Link {
		t.Errorf("%+v, then %+v", first, second)
	}
	if status, _ := page(first.Link); status != 404 {
		t.Errorf("the first link beside the second: %d", status)
	}
	if status, _ := page(second.Link); status != 200 {
		t.Errorf("the second link: %d", status)
	}
	// A terminal without the service's settings finds its address all the same.
	elsewhere := program{t: t, environ: append(slices.Clone(p.environ), "HUMANQA_ADDR=127.0.0.1:1")}
	var third personLink
	elsewhere.cli(&third, "person", "link", "--person", first.PersonID)
	if status, _ := page(third.Link); status != 200 {
		t.Errorf("the link %s of another terminal: %d", third.Link, status)
	}
	if _, stderr, err := p.tryCLI("person", "link", "--person", "nobody"); exitCode(err) != exitFailed || !strings.Contains(stderr, "person not found") {
		t.Errorf("a link for nobody: %v %q", err, stderr)
	}
}
