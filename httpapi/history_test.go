package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
)

// shop is a project with a history, and who sees it.
type shop struct {
	*service
	accountID, key, projectID string
}

func setupShop(t *testing.T) shop {
	t.Helper()
	s := shared(t)
	accountID, key := s.account(500)
	return shop{service: s, accountID: accountID, key: key, projectID: s.project(key, `{"name":"Shop"}`)}
}

// tests has the items "key=verdict" tested, the description the key in capitals.
func (s shop) tests(items ...string) (jobID string) {
	s.t.Helper()
	var list, verdicts []string
	for _, item := range items {
		key, verdict, _ := strings.Cut(item, "=")
		list = append(list, `{"key":"`+key+`","description":"`+strings.ToUpper(key)+`","severity":"critical"}`)
		verdicts = append(verdicts, map[string]string{"pass": passes, "fail": fails, "skip": skips}[verdict])
	}
	id := s.submittedWith(s.key, `"projectId":"`+s.projectID+`","checklistItems":[`+strings.Join(list, ",")+`]`)
	s.claims(s.checker(), id).checks(verdicts...).completes("Tested.")
	return id
}

func (s shop) history() map[string]any {
	s.t.Helper()
	return s.call(s.key, "GET", "/v1/projects/"+s.projectID+"/history", "").want(http.StatusOK)
}

func (s shop) open(query string) []any {
	s.t.Helper()
	body := s.call(s.key, "GET", "/v1/projects/"+s.projectID+"/open-failures"+query, "").want(http.StatusOK)
	equal(s.t, body["projectId"], any(s.projectID))
	list, _ := body["openFailures"].([]any)
	return list
}

// field gives a field of an element of a list.
func field(list any, n int, name string) any {
	elements, _ := list.([]any)
	element, _ := elements[n].(map[string]any)
	return element[name]
}

func TestTheHistoryOfAProjectWithoutTests(t *testing.T) {
	t.Parallel()
	s := setupShop(t)
	equal(t, s.history(), map[string]any{
		"projectId": s.projectID, "projectName": "Shop", "totalTests": 0.0, "passCount": 0.0, "failCount": 0.0,
		"completedCount": 0.0, "passRate": 0.0, "averageHealthScore": 0.0, "scoredTests": 0.0, "latestFailures": []any{}, "regressions": []any{},
		"trend": []any{}, "preparedRegressions": []any{},
	})
	equal(t, s.open(""), []any{})
}

// Specification, "Project history"; decisions, "Counts" and "Regressions".
func TestTheHistoryOfAProject(t *testing.T) {
	t.Parallel()
	s := setupShop(t)
	first := s.tests("x=pass", "y=fail", "z=skip")
	second := s.tests("x=fail", "y=fail", "z=fail", "n=fail")
	s.analysed(s.accountID, second)
	s.call(s.key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+s.projectID+`","fixedDescriptions":["The button works"]}`).want(http.StatusOK)

	h := s.history()
	report := s.call(s.key, "GET", "/v1/jobs/"+second+"/report", "").want(http.StatusOK)
	failure := func(n int, description, key string) map[string]any {
		return map[string]any{
			"id": field(report["items"], n, "id"), "description": description, "severity": "Critical", "key": key, "jobId": second,
		}
	}
	score := s.call(s.key, "GET", "/v1/jobs/"+second+"/ai-report", "").want(http.StatusOK)["healthScore"]
	equal(t, h, map[string]any{
		"projectId": s.projectID, "projectName": "Shop", "totalTests": 2.0, "passCount": 0.0, "failCount": 2.0,
		"completedCount": 2.0, "passRate": 0.0, "averageHealthScore": score, "scoredTests": 1.0,
		"latestFailures": []any{failure(0, "X", "x"), failure(1, "Y", "y"), failure(2, "Z", "z"), failure(3, "N", "n")},
		"regressions":    []any{"X"},
		"trend": []any{
			map[string]any{
				"jobId": second, "overallStatus": "FAIL", "healthScore": score, "passCount": 0.0, "failCount": 4.0,
				"testedAt": s.call(s.key, "GET", "/v1/jobs/"+second, "").want(http.StatusOK)["completedAt"],
			},
			map[string]any{
				"jobId": first, "overallStatus": "FAIL", "healthScore": nil, "passCount": 1.0, "failCount": 1.0,
				"testedAt": s.call(s.key, "GET", "/v1/jobs/"+first, "").want(http.StatusOK)["completedAt"],
			},
		},
		"preparedRegressions": []any{map[string]any{
			"bugIds": []any{}, "descriptions": []any{"The button works"}, "preparedAt": field(h["preparedRegressions"], 0, "preparedAt"),
		}},
	})

	s.submittedWith(s.key, `"projectId":"`+s.projectID+`"`) // a running third test
	equal(t, s.history(), h)

	s.tests("x=pass", "y=pass")
	s.tests("x=pass")
	after := s.history()
	with(t, after, map[string]any{"totalTests": 4.0, "passCount": 2.0, "failCount": 2.0, "passRate": 50.0})
	equal(t, field(after["trend"], 0, "overallStatus"), any("PASS"))
	equal(t, s.call(s.key, "GET", "/v1/projects/"+s.projectID, "").want(http.StatusOK)["passRate"], any(0.5))
}

func TestOpenFailuresShowTheirLineage(t *testing.T) {
	t.Parallel()
	s := setupShop(t)
	completed := func(jobID string) any {
		return s.call(s.key, "GET", "/v1/jobs/"+jobID, "").want(http.StatusOK)["completedAt"]
	}
	passed := completed(s.tests("x=pass", "y=fail"))
	began := completed(s.tests("x=fail", "y=pass"))
	last := s.tests("x=fail", "z=fail")
	open := s.open("")
	if len(open) != 2 {
		t.Fatalf("open: %v", open)
	}
	equal(t, open[0], any(map[string]any{
		"id": field(open, 0, "id"), "key": "x", "description": "X", "expectedOutcome": nil, "severity": "critical", "jobId": last,
		"failedAt": completed(last), "firstFailedAt": began, "failedTests": 2.0, "lastPassedAt": passed,
	}))
	equal(t, field(open, 1, "key"), any("z"))
	equal(t, field(open, 1, "lastPassedAt"), nil)
	equal(t, len(s.open("?limit=1")), 1)
	for _, limit := range []string{"0", "101", "-1", "x"} {
		equal(t, s.call(s.key, "GET", "/v1/projects/"+s.projectID+"/open-failures?limit="+limit, "").paths(), []string{"limit"})
	}
}

func TestHistoriesAreTheirAccountsAndTheirKeysOnly(t *testing.T) {
	t.Parallel()
	s := setupShop(t)
	_, stranger := s.account(0)
	bound := s.service.key(s.accountID, command.IssueKey{Scope: account.ScopeRead, ProjectID: s.projectID})
	elsewhere := s.service.key(s.accountID, command.IssueKey{Scope: account.ScopeRead, ProjectID: s.project(s.key, `{"name":"Other"}`)})
	for _, path := range []string{"/history", "/open-failures"} {
		path = "/v1/projects/" + s.projectID + path
		s.call(stranger, "GET", path, "").refused(http.StatusNotFound, domain.CodeNotFound)
		s.call(elsewhere, "GET", path, "").refused(http.StatusForbidden, domain.CodeForbidden)
		s.call(bound, "GET", path, "").want(http.StatusOK)
	}
	s.call(s.key, "GET", "/v1/projects/no-such/history", "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(s.key, "GET", "/v1/projects/..%2Fp1/open-failures", "").refused(http.StatusNotFound, domain.CodeNotFound)
}
