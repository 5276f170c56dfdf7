package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
)

// The token of a commit status is in no event, answer or log.
func TestACommitStatusIsAskedForAndItsTokenSeenByNobody(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	_, other := s.account(100)
	const canary, hash = "canary-token", "1B4f0e9851971998e732078544c96b36c3d01ced"
	status := func(fields string) string { return `"commitStatus":{` + fields + `}` }
	whole := status(`"repository":"acme/shop","commit":"` + hash + `","ref":"refs/pull/7/merge"`)
	one := func(status string) string {
		return `{"url":"https://example.com","title":"t","description":"d","jobType":"custom",` + status + `}`
	}
	bulk := `{"jobs":[` + strings.Repeat(`{"url":"https://example.com","title":"t","description":"d","jobType":"custom"},`, 2)
	bulk = strings.TrimSuffix(bulk, ",") + `],` + whole + `}`
	var ids []string
	for _, c := range [][2]string{{"/v1/jobs", one(whole)}, {"/v1/hosted/test", `{"url":"https://example.com",` + whole + `}`}, {"/v1/jobs/bulk", bulk}} {
		made := s.call(key, "POST", c[0], c[1], "X-Commit-Token", canary, "Idempotency-Key", c[0]).want(http.StatusCreated)
		again := s.call(key, "POST", c[0], c[1], "X-Commit-Token", "another", "Idempotency-Key", c[0])
		equal(t, again.want(http.StatusCreated), made) // the token is no part of what is repeated
		if id, ok := made["jobId"].(string); ok {
			ids = append(ids, id)
		} else {
			for _, id := range made["jobIds"].([]any) {
				ids = append(ids, id.(string))
			}
		}
	}
	for _, id := range ids {
		read := s.call(key, "GET", "/v1/jobs/"+id, "")
		equal(t, read.want(http.StatusOK)["commitStatus"], any(map[string]any{
			"provider": "github", "repository": "acme/shop", "commit": strings.ToLower(hash), "context": "Human QA", "ref": "refs/pull/7/merge",
			"failOn": "minor", "state": nil, "error": nil,
		}))
		s.call(other, "GET", "/v1/jobs/"+id, "").refused(http.StatusNotFound, domain.CodeNotFound)
		feed := s.call(key, "GET", "/v1/jobs/"+id+"/events", "")
		for what, text := range map[string]string{"job": read.Body.String(), "feed": feed.Body.String(), "log": s.stored(), "words": s.logged.String()} {
			if strings.Contains(text, canary) {
				t.Errorf("the %s shows the token", what)
			}
		}
	}
	var held int
	if err := s.db.GetContext(t.Context(), &held, "SELECT count(*) FROM vault.held WHERE sealed NOT LIKE '%canary%'"); err != nil || held != 3 {
		t.Errorf("%d tokens are held: %v", held, err)
	}
	head := s.written()
	for _, c := range []struct{ status, path string }{
		{status(`"commit":"` + hash + `"`), "commitStatus.repository"},
		{status(`"repository":"../shop","commit":"` + hash + `"`), "commitStatus.repository"},
		{status(`"provider":"gitlab","repository":"a/../b","commit":"` + hash + `"`), "commitStatus.repository"},
		{status(`"repository":"acme/shop","commit":"main"`), "commitStatus.commit"},
		{status(`"repository":"acme/shop","commit":"` + hash + `","failOn":"some"`), "commitStatus.failOn"},
	} {
		equal(t, s.call(key, "POST", "/v1/jobs", one(c.status), "X-Commit-Token", canary).paths(), []string{c.path})
	}
	for _, token := range []string{"", "two words", strings.Repeat("x", 501)} {
		refused := s.call(key, "POST", "/v1/jobs", one(whole), "X-Commit-Token", token)
		equal(t, refused.paths(), []string{"X-Commit-Token"})
		if token != "" && strings.Contains(refused.Body.String(), token) {
			t.Error("the refusal shows the token")
		}
	}
	equal(t, s.written(), head)
}
