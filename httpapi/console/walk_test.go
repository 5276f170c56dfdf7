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
)

// Every page of the console, asked for by everybody: operators only are let in, and
// nobody else learns that it is there.
func TestEveryPageKeepsPeopleApart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 500, false)
	checkerID := w.Checker("ann")
	guests := map[string]guest{
		"nobody": {}, "operator": w.operates("Olga"),
		"owner":   w.Joined("Owen", person.Grant{Role: person.Owner, AccountID: account}),
		"checker": w.Joined("Carol", person.Grant{Role: person.Checker, CheckerID: checkerID}),
	}
	late := w.operates("Late") // signed in nine hours ago
	_, err := w.DB.ExecContext(t.Context(), `UPDATE signin.sessions SET created_at = created_at - interval '9 hours' WHERE person_id = $1`, late.ID)
	w.Must(err)
	stale := w.operates("Stale") // whose proof is an hour old
	_, err = w.DB.ExecContext(t.Context(), `UPDATE signin.sessions SET proved_at = proved_at - interval '1 hour' WHERE person_id = $1`, stale.ID)
	w.Must(err)
	jobID := w.test(account, "top-secret title")
	poolID, at, err := w.Commands.CreatePool(t.Context(), command.Cause{CommandID: domain.NewCommandID(), Actor: "operator"}, "Banking", "")
	w.Shown(at, err)
	ids := map[string]string{"jobs": jobID, "accounts": account, "people": guests["checker"].ID, "pools": poolID, "checks": jobID}
	fill := func(pattern string) string {
		return strings.NewReplacer("{id}", ids[strings.Split(pattern+"//", "/")[2]], "{stream}", "job-"+jobID, "{name}", "jobs").Replace(pattern)
	}
	// What operators are answered to an empty form: nothing is done without a reason.
	letIn := func(p ui.Page) int {
		if p.Method == http.MethodGet {
			return 200
		}
		return 422
	}
	for _, p := range w.Site.Pages {
		if !strings.HasPrefix(p.Pattern, "/console") {
			continue
		}
		name := p.Method + " " + p.Pattern
		if p.For != ui.Operators {
			t.Errorf("%s is not for operators alone", name)
		}
		path := fill(p.Pattern)
		ask := func(g guest) (int, string, http.Header) {
			var sent url.Values
			if p.Method == http.MethodPost {
				sent = url.Values{"command": {"x"}}
			}
			got := w.Call(g, p.Method, path, sent)
			return got.Status, got.Body, got.Header
		}
		for who, g := range guests {
			status, body, header := ask(g)
			switch who {
			case "nobody":
				if status != 303 || !strings.HasPrefix(header.Get("Location"), "/signin?next=") {
					t.Errorf("%s as nobody: %d %s", name, status, header.Get("Location"))
				}
			case "operator":
				if status != letIn(p) {
					t.Errorf("%s as an operator: %d, want %d: %s", name, status, letIn(p), body)
				}
			default:
				if status != 404 || strings.Contains(body, "Acme") && who == "checker" || strings.Contains(body, account) && who == "checker" {
					t.Errorf("%s as %s: %d", name, who, status)
				}
			}
			if strings.Contains(body, "top-secret") || strings.Contains(body, "correct-horse") {
				t.Errorf("%s as %s tells what the client wrote", name, who)
			}
		}
		if status, _, header := ask(late); status != 303 || !strings.HasPrefix(header.Get("Location"), "/signin?next=") {
			t.Errorf("%s nine hours after signing in: %d", name, status)
		}
		if status, _, header := ask(stale); p.Fresh != (status == 303 && strings.HasPrefix(header.Get("Location"), "/signin/confirm")) {
			t.Errorf("%s with an old proof: %d %s", name, status, header.Get("Location"))
		}
	}
	if events, _, err := w.Reads.Acts.Acts(t.Context(), listAll); err != nil || len(events) != 0 {
		t.Errorf("without a reason %d acts were done, %v", len(events), err)
	}
	w.KeepsForms(stale, "/console/", fill, letIn)
	w.HostileIDs(guests["operator"], "/console/", fill, "")
	for _, path := range []string{"/console/nowhere", "/console/accounts/x", "/console/streams/%00", "/console/streams/job-" + account, "/console/people/" + account} {
		if got := w.Call(guests["operator"], "GET", path, nil); got.Status != 404 {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	for _, query := range []string{"q=%00", "q=%ff", "status=x%00", "page=0", "page=9999999999", "act=x", "by=%00", "account=%00", "show=%00", "from=-1", "from=99999999999999999999"} {
		for _, page := range []string{"jobs", "accounts", "people", "checkers", "acts", "streams", "webhooks", "evidence", "streams/job-" + jobID} {
			if got := w.Call(guests["operator"], "GET", "/console/"+page+"?"+query, nil); got.Status != 200 && got.Status != 404 {
				t.Errorf("%s?%s: %d", page, query, got.Status)
			}
		}
	}
	if got := w.Call(guests["operator"], "POST", "/console/accounts/"+account+"/suspend", form("reason", "x"), "Sec-Fetch-Site", "cross-site"); got.Status != 403 {
		t.Errorf("a form of another site: %d", got.Status)
	}
	for _, begins := range []string{"accounts", "people", "pools", "projections", "streams", "checks/{id}", "evidence"} {
		w.HostileForms(w.operates("Oscar"), "/console/"+begins, fill, "")
	}
	if got := w.Call(guests["operator"], "GET", "/", nil); got.Header.Get("Location") != "/console" {
		t.Errorf("an operator's place is %q", got.Header.Get("Location"))
	}
}
