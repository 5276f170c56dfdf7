package room_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/session"
	"humanqa/httpapi/ui"
	"humanqa/internal/testing/pagetest"
)

// Every page of the room, asked for by everybody: the people of the account and the
// checkers whose slot it is get in, each by their own door; to everybody else there
// is no such session.
func TestEveryPageKeepsPeopleApart(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 500, false)
	s := w.opened(account, "Caller", "Callee")
	ann, annID := w.Checks("ann")
	w.claimed(annID, s.Slots[0].JobID)
	other, _ := w.Checks("other")
	left, leftID := w.Checks("left")
	w.claimed(leftID, s.Slots[1].JobID)
	if out, err := w.Commands.LeaveSession(t.Context(), pagetest.ByChecker(leftID), leftID, s.SessionID); err != nil {
		t.Fatal(err)
	} else {
		w.Shown(out.Position, nil)
	}
	// Somebody who tested for the account before they came to belong to it.
	own, ownID := w.Checks("own")
	w.claimed(ownID, s.Slots[1].JobID)
	w.Shown(w.Commands.GrantRole(t.Context(), pagetest.Client(""), own.ID, person.Grant{Role: person.Viewer, AccountID: account}))
	viewer := w.Joined("viewer", person.Grant{Role: person.Viewer, AccountID: account})
	developer := w.Joined("developer", person.Grant{Role: person.Developer, AccountID: account})
	fill := strings.NewReplacer("{id}", s.SessionID, "{film}", "none").Replace
	var table []ui.Page
	for _, p := range w.Site.Pages {
		if strings.Contains(p.Pattern, "/sessions/{id}") {
			table = append(table, p)
		}
	}
	wants := func(p ui.Page, who string) []int {
		want := 404
		switch {
		case p.For == ui.Checkers && who == "ann", p.For == ui.Developers && who == "developer", p.For == ui.Viewers && (who == "viewer" || who == "developer" || who == "own"):
			if want = 200; p.Method == http.MethodPost {
				want = 303
			}
		case p.For == ui.Developers && (who == "viewer" || who == "own"):
			want = 403
		}
		switch { // of those who are let in
		case strings.HasSuffix(p.Pattern, "/leave") && who == "ann":
			return nil // it would end what the others are compared with
		case want == 200 && p.Takes:
			want = 403 // without an origin
		case want == 200 && strings.HasSuffix(p.Pattern, "{film}"):
			want = 404 // there is none
		}
		return []int{want}
	}
	w.Apart(pagetest.Apart{
		Pages: table, Path: fill, Wants: wants, Form: func(ui.Page) url.Values { return pagetest.Form() },
		Askers: []pagetest.Asker{
			{Name: "ann", Guest: ann}, {Name: "other", Guest: other}, {Name: "left", Guest: left}, {Name: "own", Guest: own},
			{Name: "viewer", Guest: viewer}, {Name: "developer", Guest: developer},
			{Name: "stranger", Guest: w.Joined("stranger", person.Grant{Role: person.Owner, AccountID: w.Account("Other", 0, false)})},
			{Name: "operator", Guest: w.Joined("operator", person.Grant{Role: person.Operator})},
		},
		Hides: func(p ui.Page, who string) []string {
			switch {
			case who == "ann": // whose session it is, and what it costs
				return []string{account, "Acme", "credit"}
			case who == pagetest.Nobody || wants(p, who)[0] == 404:
				return []string{"chat.example.com"}
			}
			return nil
		},
	})
	w.HostileIDs(ann, "/workbench/sessions/", fill, "")
	w.HostileIDs(developer, "/dashboard/sessions/", fill, "")
	for _, path := range []string{"/workbench/sessions/", "/dashboard/sessions/"} {
		for _, id := range []string{"none", "%00", "018f2f70-2222-7d3b-9a52-6f0a3b1c2d4e"} {
			if got := w.Call(own, "GET", path+id, nil); got.Status != 404 {
				t.Errorf("%s%s: %d", path, id, got.Status)
			}
		}
	}
	w.HostileForms(ann, "/workbench/sessions/", fill, "")
	w.HostileForms(developer, "/dashboard/sessions/", fill, "")
	for _, path := range []string{"/workbench", "/dashboard"} {
		if got := w.Call(ann, "POST", path+"/sessions/"+s.SessionID+"/marks", pagetest.Form(), "Sec-Fetch-Site", "cross-site"); got.Status != 403 {
			t.Errorf("a mark from another site: %d", got.Status)
		}
	}
}

// The lobby says what its deadline does, in the words of either door; readiness,
// marks and the end go through it.
func TestTheLifeOfARoom(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 500, false)
	s := w.opened(account, "Caller", "Callee", "Listener", "Fourth", "Fifth")
	dev := w.Joined("dev", person.Grant{Role: person.Developer, AccountID: account})
	at := s.ReadyDeadline.Format("15:04")
	var seats []sits
	var guests []guest
	for n, name := range []string{"ann", "bob", "cay", "dan", "eve"} {
		g, id := w.Checks(name)
		guests, seats = append(guests, g), append(seats, w.claimed(id, s.Slots[n].JobID))
	}
	watch, work := "/dashboard/sessions/"+s.SessionID, "/workbench/sessions/"+s.SessionID
	see := func(g guest, path string, wants ...string) string {
		t.Helper()
		got := w.Call(g, "GET", path, nil)
		for _, want := range wants {
			if got.Status != 200 || !strings.Contains(got.Body, want) {
				t.Errorf("%s (%d) does not say %q", path, got.Status, want)
			}
		}
		return got.Body
	}
	see(dev, watch, at+" UTC</time> the session will not start, with 0 of 5 checkers ready; 25 credits refunded. It starts at once when all are ready.", "In the lobby")
	for n := range 3 {
		if got := w.Call(guests[n], "POST", work+"/ready", pagetest.Form()); got.Header.Get("Location") != work {
			t.Fatalf("ready: %d %s", got.Status, got.Body)
		}
	}
	see(dev, watch, at+" UTC</time> the session will start with 3 of 5 checkers; 10 credits refunded.")
	page := see(guests[0], work, at+" UTC</time> the session will start with 3 of 5 checkers.", "You are: Caller", "You are ready", "The caller rings", `data-token="1"`)
	if strings.Contains(page, "refunded") || strings.Contains(page, "I am ready") {
		t.Error("a checker is told of the client's credits, or to be ready again")
	}

	mark := pagetest.Form("note", "<b>It rings</b> twice", "command", uuid.NewString())
	for range 2 { // sent twice it is one
		if got := w.Call(guests[0], "POST", work+"/marks", mark, "Accept", "application/json"); got.Status != 200 || !strings.Contains(got.Body, work+"#marks") {
			t.Fatalf("a mark: %d %s", got.Status, got.Body)
		}
	}
	for n := 3; n < 5; n++ {
		seats[n].ready()
	}
	if got := w.Call(dev, "POST", watch+"/marks", pagetest.Form("note", "")); got.Status != 303 {
		t.Fatalf("a mark of the client's: %d", got.Status)
	}
	long := w.Call(dev, "POST", watch+"/marks", pagetest.Form("note", strings.Repeat("x", 201)), "Referer", w.Origin+watch)
	if long.Status != 422 || !strings.Contains(long.Body, "Description must have at most 200 characters") || !strings.Contains(long.Body, strings.Repeat("x", 201)) {
		t.Errorf("a note that is too long: %d", long.Status)
	}
	seats[0].says(0, job.ItemPass, "")
	seats[0].says(1, job.ItemFail, "Silence.")
	total := len(seats[0].Checklist)
	for _, g := range guests[:2] {
		body := see(g, work, fmt.Sprintf("2 of %d", total), "1 failed", "&lt;b&gt;It rings&lt;/b&gt; twice", "The client", "Open your checklist")
		if strings.Count(body, "&lt;b&gt;It rings") != 1 {
			t.Error("a mark is there twice")
		}
	}
	see(dev, watch, fmt.Sprintf("2 of %d", total), "The client", "Caller")

	gives := func(n int) {
		t.Helper()
		at, err := w.Commands.ReleaseJob(t.Context(), pagetest.ByChecker(seats[n].id), seats[n].claim())
		w.Shown(at, err)
	}
	parts, err := w.Reads.Jobs.Parts(t.Context(), account, []string{s.Slots[0].JobID})
	w.Must(err)
	due := parts[s.Slots[0].JobID].DueAt.UTC().Format("15:04")
	gives(4)
	see(dev, watch, due+" UTC</time> 1 of 5 tests end, unless other checkers take them. What has no report is refunded.", "Given back", "Testing")
	for n := range 4 {
		gives(n)
	}
	see(dev, watch, due+" UTC</time> the session ends, unless other checkers take its tests: all were given back. What has no report is refunded.", "No checker")
	for n := range seats {
		seats[n] = w.claimed(seats[n].id, s.Slots[n].JobID)
	}
	see(dev, watch, "All checkers who were ready test at the same time.")

	for n, seat := range seats {
		seat.completes([]job.ItemStatus{job.ItemPass, job.ItemFail}[n/4])
	}
	w.settled(account, s.SessionID, session.StatusCompleted)
	for _, g := range []struct {
		guest
		path string
	}{{dev, watch}, {guests[0], work}, {guests[4], work}} {
		last := "Fifth"
		if g.ID == guests[4].ID { // one's own is named so
			last = "You (Fifth)"
		}
		body := see(g.guest, g.path, "How it went", "4 tests passed, 1 test failed", "Marked",
			last+": 0 passed, "+fmt.Sprint(total)+" failed", "<strong>"+last+"</strong>")
		// The lane that failed is on top, and in it nothing is drawn over a failure.
		if lane := strings.Index(body, "Callee: "); lane < strings.Index(body, last+": 0 passed") {
			t.Error("a lane without failures stands above the one that failed")
		}
		if strings.Contains(body, "Mark this moment") {
			t.Error("a closed session takes marks")
		}
	}
	if got := w.Call(dev, "POST", watch+"/marks", pagetest.Form()); got.Status != 409 {
		t.Errorf("a mark on a closed session: %d", got.Status)
	}
	see(dev, watch, "/dashboard/jobs/"+s.Slots[0].JobID+"#item-")
	if body := see(guests[1], work, "/workbench/jobs/"+s.Slots[1].JobID); strings.Contains(body, s.Slots[0].JobID) {
		t.Error("a checker is led to somebody else's test")
	}
}
