package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
)

// facts asks for the account's activity, as "by kind detail".
func (s *service) facts(key, query string) (told []string) {
	s.t.Helper()
	list, _ := s.call(key, "GET", "/v1/activity"+query, "").want(http.StatusOK)["facts"].([]any)
	for _, one := range list {
		f, _ := one.(map[string]any)
		detail, _ := f["detail"].(string)
		told = append(told, strings.TrimSpace(f["by"].(string)+" "+f["kind"].(string)+" "+detail))
	}
	return told
}

// Decisions, "Secrets seen".
func TestAnAccountLearnsWhichCheckerSawWhichSecret(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	_, strange := s.account(100)
	const secrets = `"credentials":{"username":"u","password":"a password"},"accessInstructions":"ring twice"`
	id := s.submittedWith(key, checklistOf(1)+`,`+secrets)
	other := s.submittedWith(strange, checklistOf(1)+`,`+secrets)
	plain := s.submittedWith(key, checklistOf(1))
	ann := s.checker()

	var none []string
	equal(t, s.facts(key, "?kind=job.secret_shown"), none)
	claim := s.call(ann, "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)
	brief, _ := claim["brief"].(map[string]any)
	equal(t, brief["accessInstructions"], any("ring twice"))
	for range 2 { // a repeat shows them again, and a browser that comes back
		s.call(ann, "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)
		again, _ := s.call(ann, "GET", "/v1/checker/claims", "").want(http.StatusOK)["brief"].(map[string]any)
		equal(t, again, brief)
	}
	seen := s.facts(key, "?kind=job.secret_shown")
	if len(seen) != 2 {
		t.Fatalf("the account learns of %q", seen)
	}
	name, _, _ := strings.Cut(seen[0], " ")
	equal(t, seen, []string{name + " job.secret_shown access", name + " job.secret_shown credentials"})
	equal(t, s.facts(key, "?jobId="+id)[:2], seen)
	equal(t, s.facts(key, "?by="+url.QueryEscape(name)), seen)
	equal(t, s.facts(strange, "?kind=job.secret_shown"), none)
	equal(t, s.facts(strange, "?jobId="+id), none)

	release := func(claim map[string]any, jobID string) {
		s.call(ann, "POST", "/v1/checker/jobs/"+jobID+"/release", "", "X-Claim-Token", claim["claimToken"].(string)).want(http.StatusOK)
	}
	release(claim, id)
	claim = s.call(ann, "POST", "/v1/checker/claims", `{"jobId":"`+plain+`"}`).want(http.StatusCreated)
	release(claim, plain)
	equal(t, s.facts(key, "?kind=job.secret_shown"), seen) // nothing of it is a secret
	claim = s.call(ann, "POST", "/v1/checker/claims", `{"jobId":"`+other+`"}`).want(http.StatusCreated)
	release(claim, other)
	theirs := s.facts(strange, "?kind=job.secret_shown")
	if len(theirs) != 2 || strings.HasPrefix(theirs[0], name+" ") {
		t.Errorf("another account learns of %q, this one of %s", theirs, name)
	}
	s.call(ann, "POST", "/v1/checker/claims", `{"jobId":"`+id+`"}`).want(http.StatusCreated)
	equal(t, s.facts(key, "?kind=job.secret_shown"), append(slices.Clone(seen), seen...)) // another claim, the same name

	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeRead, ProjectID: s.project(key, `{"name":"own"}`)})
	s.call(bound, "GET", "/v1/activity", "").refused(http.StatusForbidden, domain.CodeForbidden)
	equal(t, s.call(key, "GET", "/v1/activity?kind=job.claimed&limit=0&offset=x", "").paths(), []string{"kind", "limit", "offset"})
}

// Every fact has its person or its key, and a list of them has pages.
func TestTheActivityNamesWhatAKeyDid(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, _ := s.account(100)
	key := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, Name: "CI"})
	project := s.project(key, `{"name":"Shop"}`)
	s.call(key, "PATCH", "/v1/projects/"+project, `{"name":"The shop","webhookUrl":"https://hooks.example.com/in"}`).want(http.StatusOK)
	cancelled := s.submittedWith(key, checklistOf(1)+`,"projectId":"`+project+`"`)
	s.call(key, "POST", "/v1/jobs/"+cancelled+"/cancel", "").want(http.StatusOK)
	rated := s.tested(key, passes)
	s.call(key, "POST", "/v1/jobs/"+rated+"/rating", `{"rating":4}`).want(http.StatusOK)
	all := s.facts(key, "?limit=100")
	by, _, _ := strings.Cut(all[0], " ")
	if !strings.HasPrefix(by, "key:") {
		t.Fatalf("the newest fact is %q", all[0])
	}
	equal(t, s.facts(key, "?limit=100&projectId="+project), []string{
		by + " job.cancelled", by + " job.created", by + " project.webhook_set", by + " project.webhook_secret_set",
		by + " project.settings_changed", by + " project.created",
	})
	equal(t, all[:2], []string{by + " job.rated 4", by + " job.created"})
	paged := map[string]bool{}
	for offset := "0"; ; {
		page := s.call(key, "GET", "/v1/activity?limit=3&offset="+offset, "").want(http.StatusOK)
		list, _ := page["facts"].([]any)
		for _, one := range list {
			paged[one.(map[string]any)["id"].(string)] = true
		}
		next, more := page["nextOffset"].(float64)
		if !more {
			break
		}
		offset = fmt.Sprint(next)
	}
	equal(t, len(paged), len(all))
}
