package httpapi

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
)

func TestCheckersWhoTakeTheNextJobEachGetTheirOwn(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	urgent, _ := s.call(key, "POST", "/v1/jobs", strings.Replace(aJob, "{", `{"priority":"urgent",`, 1)).want(http.StatusCreated)["jobId"].(string)
	const n = 4
	keys := []string{s.checker()}
	for range n - 1 {
		s.submitted(key)
		keys = append(keys, s.checker())
	}
	ai := strings.Replace(aJob, "Payment Flow", "AI Review", 1)
	s.call(key, "POST", "/v1/jobs", ai).want(http.StatusCreated) // never for people

	first := s.call(keys[0], "POST", "/v1/checker/claims", "{}").want(http.StatusCreated)
	equal(t, first["jobId"], urgent)
	claimed := make([]string, n)
	claimed[0] = urgent
	var all sync.WaitGroup
	for i := 1; i < n; i++ {
		all.Go(func() {
			claimed[i], _ = s.call(keys[i], "POST", "/v1/checker/claims", "").want(http.StatusCreated)["jobId"].(string)
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, id := range claimed {
		if id == "" || seen[id] {
			t.Errorf("the claims are %v", claimed)
		}
		seen[id] = true
	}
	empty := s.call(s.checker(), "POST", "/v1/checker/claims", "")
	empty.want(http.StatusNoContent)
	equal(t, empty.Body.Len(), 0)
	equal(t, empty.Header().Get("Content-Type"), "")
}

// The queue is not gone through for nothing.
func TestACheckerHasOneLiveClaim(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	claimed, checker := s.submitted(key), s.checker()
	first := s.claims(checker, claimed)
	s.submitted(key)
	full := s.call(checker, "POST", "/v1/checker/claims", "").refused(http.StatusConflict, domain.CodeConflict)
	equal(t, full["claimedJobs"], []any{claimed})
	again := s.call(checker, "POST", "/v1/checker/claims", `{"jobId":"`+claimed+`"}`).want(http.StatusCreated)
	equal(t, again["claimToken"], any(first.token))
}

func TestAReleasedJobGoesBackAndItsOldTokenIsRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submitted(key)
	one, two := s.checker(), s.checker()
	claim := func(who string) string {
		token, _ := s.call(who, "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)["claimToken"].(string)
		return token
	}
	work := "/v1/checker/jobs/" + id
	old := claim(one)
	s.call(two, "POST", work+"/release", "", "X-Claim-Token", old).refused(http.StatusConflict, domain.CodeConflict)
	equal(t, s.call(one, "POST", work+"/release", "", "X-Claim-Token", old).want(http.StatusOK), map[string]any{"jobId": id, "status": "pending"})
	with(t, s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK), map[string]any{"status": "pending", "claimedAt": nil})
	fresh := claim(two)
	for _, stale := range []struct{ key, token string }{{one, old}, {two, old}, {one, fresh}} {
		s.call(stale.key, "PUT", work+"/items/item-1", `{"status":"pass"}`, "X-Claim-Token", stale.token).refused(http.StatusConflict, domain.CodeConflict)
	}
	s.call(two, "PUT", work+"/items/item-1", `{"status":"pass"}`, "X-Claim-Token", fresh).want(http.StatusOK)
	s.call(two, "PUT", work+"/items/item-9", `{"status":"pass"}`, "X-Claim-Token", fresh).refused(http.StatusNotFound, domain.CodeNotFound)
}

func TestWhatACheckersCallMustHold(t *testing.T) {
	t.Parallel()
	s := shared(t)
	checker := s.checker()
	work := "/v1/checker/jobs/" + uuid.NewString()
	const token = "X-Claim-Token"
	for _, c := range []struct {
		method, path, body, token string
		want                      []string
	}{
		{"PUT", "/items/item-1", `{"status":"maybe","note":7,"severity":"huge","screenshotUrl":"javascript:x"}`, "", []string{token, "note", "screenshotUrl", "severity", "status"}},
		{"PUT", "/items/item-1", `{"status":"skip"}`, "1", []string{"reason"}},
		{"PUT", "/items/item-1", `{"status":"pass","reason":"blocked"}`, "1", []string{"reason"}},
		{"PUT", "/items/item-1", `{"status":"skip","reason":"tired"}`, "1", []string{"reason"}},
		{"PUT", "/items/item-1", ``, "1", []string{"body"}},
		{"PUT", "/items/item-1", `{"status":"pass"}`, "one", []string{token}},
		{"PUT", "/items/item-1", `{"status":"pass"}`, "-1", []string{token}},
		{"PUT", "/items/item-1", `{"status":"pass"}`, "99999999999", []string{token}},
		{"POST", "/items", `{"status":"skip"}`, "1", []string{"description", "status"}},
		{"POST", "/complete", `{"summary":[],"recordingUrl":"ftp://x.example/"}`, "1", []string{"recordingUrl", "summary"}},
		{"POST", "/complete", `[]`, "1", []string{"body"}},
		{"POST", "/release", ``, "", []string{token}},
	} {
		headers := []string{}
		if c.token != "" {
			headers = []string{token, c.token}
		}
		equal(t, s.call(checker, c.method, work+c.path, c.body, headers...).paths(), c.want)
	}
	equal(t, s.call(checker, "POST", "/v1/checker/claims", `{"jobId":7}`).paths(), []string{"jobId"})
	equal(t, s.call(checker, "GET", "/v1/checker/queue?limit=0", "").paths(), []string{"limit"})
	s.call(checker, "POST", "/v1/checker/claims", `{"jobId":"`+uuid.NewString()+`"}`).refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(checker, "POST", work+"/release", "", token, "1").refused(http.StatusNotFound, domain.CodeNotFound)
}
