package httpapi

import (
	"net/http"
	"testing"

	"humanqa/domain/account"
	"humanqa/domain/command"
)

// The specification's list has no pages; without parameters it is whole as far
// as a page may go.
func TestTheListOfProjectsHasPages(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(0)
	_, stranger := s.account(0)
	s.project(stranger, `{"name":"theirs"}`)
	var ids []any
	for _, name := range []string{"c", "b", "a"} {
		ids = append([]any{s.project(key, `{"name":"`+name+`"}`)}, ids...) // newest first
	}
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeRead, ProjectID: ids[2].(string)})
	for _, c := range []struct {
		key, query    string
		want          []any
		total         float64
		limit, offset float64
	}{
		{key, "", ids, 3, 1000, 0},
		{key, "?limit=1000", ids, 3, 1000, 0},
		{key, "?limit=2", ids[:2], 3, 2, 0},
		{key, "?limit=2&offset=2", ids[2:], 3, 2, 2},
		{key, "?offset=3", []any{}, 3, 1000, 3},
		{bound, "?limit=1", ids[2:], 1, 1, 0}, // whatever is newer
		{bound, "?offset=1", []any{}, 1, 1000, 1},
	} {
		page := s.call(c.key, "GET", "/v1/projects"+c.query, "").want(http.StatusOK)
		shown := []any{}
		for _, p := range page["projects"].([]any) {
			shown = append(shown, p.(map[string]any)["id"])
		}
		delete(page, "projects")
		equal(t, shown, c.want)
		equal(t, page, map[string]any{"total": c.total, "limit": c.limit, "offset": c.offset})
	}
	for query, path := range map[string]string{"limit=0": "limit", "limit=1001": "limit", "offset=-1": "offset", "offset=x": "offset"} {
		equal(t, s.call(key, "GET", "/v1/projects?"+query, "").paths(), []string{path})
	}
}
