package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/httpapi/ui"
	"humanqa/internal/testing/pagetest"
)

// Every page of the console, asked for by everybody: operators only are let in, and
// nobody else learns that it is there.
func TestEveryPageKeepsPeopleApart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 500, false)
	checkerID := w.Checker("ann")
	olga := w.operates("Olga")
	checker := w.Joined("Carol", person.Grant{Role: person.Checker, CheckerID: checkerID})
	late := w.operates("Late") // signed in nine hours ago
	_, err := w.DB.ExecContext(t.Context(), `UPDATE signin.sessions SET created_at = created_at - interval '9 hours' WHERE person_id = $1`, late.ID)
	w.Must(err)
	stale := w.operates("Stale") // whose proof is an hour old
	_, err = w.DB.ExecContext(t.Context(), `UPDATE signin.sessions SET proved_at = proved_at - interval '1 hour' WHERE person_id = $1`, stale.ID)
	w.Must(err)
	jobID := w.test(account, "top-secret title")
	poolID, at, err := w.Commands.CreatePool(t.Context(), command.Cause{CommandID: domain.NewCommandID(), Actor: "operator"}, "Banking", "")
	w.Shown(at, err)
	ids := map[string]string{"jobs": jobID, "accounts": account, "people": checker.ID, "pools": poolID, "checks": jobID}
	fill := func(pattern string) string {
		return strings.NewReplacer("{id}", ids[strings.Split(pattern+"//", "/")[2]], "{stream}", "job-"+jobID, "{name}", "jobs", "{dispute}", "none").Replace(pattern)
	}
	// What operators are answered to an empty form: nothing is done without a reason.
	letIn := func(p ui.Page) int {
		if p.Method == http.MethodGet {
			return 200
		}
		return 422
	}
	var table []ui.Page
	for _, p := range w.Site.Pages {
		if strings.HasPrefix(p.Pattern, "/console") {
			table = append(table, p)
			if p.For != ui.Operators {
				t.Errorf("%s %s is not for operators alone", p.Method, p.Pattern)
			}
		}
	}
	w.Apart(pagetest.Apart{
		Pages: table, Path: fill, Form: func(ui.Page) url.Values { return url.Values{"command": {"x"}} },
		Askers: []pagetest.Asker{
			{Name: "operator", Guest: olga}, {Name: "late", Guest: late}, {Name: "stale", Guest: stale}, {Name: "checker", Guest: checker},
			{Name: "owner", Guest: w.Joined("Owen", person.Grant{Role: person.Owner, AccountID: account})},
		},
		Wants: func(p ui.Page, who string) []int {
			switch {
			case who == "late" || who == "stale" && p.Fresh:
				return []int{303}
			case who == "operator" || who == "stale":
				return []int{letIn(p)}
			default:
				return []int{404}
			}
		},
		Hides: func(_ ui.Page, who string) []string {
			hidden := []string{"top-secret", "correct-horse"} // what the client wrote
			if who == "checker" {
				hidden = append(hidden, "Acme", account)
			}
			return hidden
		},
		Sees: func(p ui.Page, who string, got pagetest.Response) {
			leads := map[string]string{"late": "/signin?next="}
			if p.Fresh {
				leads["stale"] = "/signin/confirm"
			}
			if to := got.Header.Get("Location"); !strings.HasPrefix(to, leads[who]) {
				t.Errorf("%s %s leads %s to %q", p.Method, p.Pattern, who, to)
			}
		},
	})
	if events, _, err := w.Reads.Acts.Acts(t.Context(), listAll); err != nil || len(events) != 0 {
		t.Errorf("without a reason %d acts were done, %v", len(events), err)
	}
	w.KeepsForms(stale, "/console/", fill, letIn)
	w.HostileIDs(olga, "/console/", fill, "")
	for _, path := range []string{"/console/nowhere", "/console/accounts/x", "/console/streams/%00", "/console/streams/job-" + account, "/console/people/" + account} {
		if got := w.Call(olga, "GET", path, nil); got.Status != 404 {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	oscar := w.operates("Oscar") // a session has 600 requests a minute, which a quick machine makes
	for _, query := range []string{"q=%00", "q=%ff", "status=x%00", "page=0", "page=9999999999", "act=x", "by=%00", "account=%00", "show=%00", "from=-1", "from=99999999999999999999"} {
		for _, page := range []string{"jobs", "accounts", "people", "checkers", "acts", "streams", "webhooks", "evidence", "streams/job-" + jobID} {
			if got := w.Call(oscar, "GET", "/console/"+page+"?"+query, nil); got.Status != 200 && got.Status != 404 {
				t.Errorf("%s?%s: %d", page, query, got.Status)
			}
		}
	}
	if got := w.Call(oscar, "POST", "/console/accounts/"+account+"/suspend", form("reason", "x"), "Sec-Fetch-Site", "cross-site"); got.Status != 403 {
		t.Errorf("a form of another site: %d", got.Status)
	}
	for _, begins := range []string{"accounts", "people", "pools", "projections", "streams", "checks/{id}", "evidence"} {
		w.HostileForms(w.operates("Oscar"), "/console/"+begins, fill, "")
	}
	if got := w.Call(oscar, "GET", "/", nil); got.Header.Get("Location") != "/console" {
		t.Errorf("an operator's place is %q", got.Header.Get("Location"))
	}
}
