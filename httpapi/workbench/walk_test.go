package workbench_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/ui"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/testing/pgtest"
)

// Every page of the workbench, asked for by everybody: only who holds the claim
// is let in, and nobody else learns of the test.
func TestEveryPageKeepsPeopleApart(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.Account("Acme", 500, false)
	holder, holderID := w.Checks("holder")
	other, _ := w.Checks("other")
	member := w.Joined("own", person.Grant{Role: person.Checker, CheckerID: w.Checker("own")})
	w.Shown(w.Commands.GrantRole(t.Context(), pagetest.Client(""), member.ID, person.Grant{Role: person.Viewer, AccountID: account}))
	jobID := w.test(account, "Top secret test", 2)
	c := w.claimed(holderID, jobID)
	if got := w.uploads(holder, "/workbench/jobs/"+jobID+"/items/"+c.Checklist[0].ID+"/pictures", c.Token, picture(1)); got.Status != 303 {
		t.Fatalf("a picture: %d", got.Status)
	}
	page := w.Call(holder, "GET", "/workbench/jobs/"+jobID, nil)
	shown := evidenceLinks.FindString(page.Body)
	if shown == "" {
		t.Fatal("the page shows no picture")
	}
	found, seen, err := w.Commands.AddFinding(t.Context(), pagetest.ByChecker(holderID), command.Claim{CheckerID: holderID, JobID: jobID, Token: c.Token},
		job.Finding{Item: job.Item{Description: "The footer overlaps", Severity: job.Minor}, Status: job.ItemFail})
	w.Shown(seen, err)
	fill := strings.NewReplacer("{finding}", found.ID, "{id}", jobID, "{item}", c.Checklist[0].ID, "{dispute}", "none", "{evidence}", shown[strings.LastIndex(shown, "/")+1:], "{recording}", recording(w, holder, jobID, c.Token))
	token := strconv.Itoa(c.Token)
	// What the holder gets; each form is sent empty but for its token.
	letIn := map[string]int{
		"POST /workbench/claims":                                 303,
		"POST /workbench/profile":                                303,
		"POST /workbench/jobs/{id}/items/{item}":                 422,
		"POST /workbench/jobs/{id}/items/{item}/pictures":        422,
		"POST /workbench/jobs/{id}/items/{item}/pictures/remove": 303,
		"GET /workbench/jobs/{id}/evidence/{evidence}":           303,
		"POST /workbench/jobs/{id}/findings":                     422,
		"POST /workbench/jobs/{id}/findings/{finding}":           422,
		"POST /workbench/jobs/{id}/findings/{finding}/withdraw":  303,
		"POST /workbench/jobs/{id}/questions":                    422,
		"POST /workbench/jobs/{id}/disputes/{dispute}":           422,
		"POST /workbench/jobs/{id}/recordings":                   422,
		"POST /workbench/jobs/{id}/recordings/{recording}/parts": 422,
		"POST /workbench/jobs/{id}/marks":                        303,
		"POST /workbench/jobs/{id}/ready":                        404,
		"POST /workbench/jobs/{id}/leave":                        404,
		"POST /workbench/jobs/{id}/complete":                     409,
		"POST /workbench/jobs/{id}/untestable":                   422,
		"POST /workbench/jobs/{id}/release":                      303,
	}
	var table []ui.Page
	for _, p := range w.Site.Pages {
		if p.For == ui.Checkers && !strings.HasSuffix(p.Pattern, "/release") {
			table = append(table, p)
		}
	}
	table = append(table, ui.Page{Method: "POST", Pattern: "/workbench/jobs/{id}/release"}) // ends the claim
	w.Apart(pagetest.Apart{
		Pages: table, Path: fill.Replace, Form: func(ui.Page) url.Values { return pagetest.Form("token", token) },
		Askers: []pagetest.Asker{
			{Name: "other", Guest: other}, {Name: "own", Guest: member},
			{Name: "owner", Guest: w.Joined("owner", person.Grant{Role: person.Owner, AccountID: account})},
			{Name: "operator", Guest: w.Joined("operator", person.Grant{Role: person.Operator})},
			{Name: "holder", Guest: holder},
		},
		Wants: func(p ui.Page, who string) []int {
			switch {
			case who == "owner" || who == "operator":
				return []int{404}
			case who == "holder":
				return []int{cmp.Or(letIn[p.Method+" "+p.Pattern], 200)}
			case strings.Contains(p.Pattern, "{id}"): // checkers who do not hold it
				return []int{404, 409, 422}
			default: // their own lists are theirs
				return []int{200, 303}
			}
		},
		Hides: func(p ui.Page, who string) []string {
			switch {
			case who != "holder":
				return []string{"Top secret", "Step 1", "Acme", account, secret}
			case !strings.HasSuffix(p.Pattern, "/secrets"):
				return []string{secret}
			}
			return nil
		},
		Sees: func(p ui.Page, who string, got pagetest.Response) {
			if who == "holder" && strings.HasSuffix(p.Pattern, "/secrets") && !strings.Contains(got.Body, secret) {
				t.Errorf("%s %s is without the login", p.Method, p.Pattern)
			}
		},
	})
	for n, walk := range []func(g guest, begins string, fill func(string) string, token string){w.HostileIDs, w.HostileForms} {
		hostile, id := w.Checks(fmt.Sprint("hostile ", n)) // each has their own limit of requests
		another := w.test(account, "Another test", 2)
		c := w.claimed(id, another)
		walk(hostile, "/workbench/", strings.NewReplacer("{id}", another, "{item}", c.Checklist[0].ID, "{evidence}", "none", "{dispute}", "none", "{finding}", found.ID,
			"{recording}", recording(w, hostile, another, c.Token)).Replace, strconv.Itoa(c.Token))
	}
}

// recording is the id of one that the guest begins.
func recording(w world, g guest, jobID string, token int) string {
	w.T.Helper()
	got := w.Call(g, "POST", "/workbench/jobs/"+jobID+"/recordings", pagetest.Form("token", strconv.Itoa(token), "ago", "0"))
	_, id, _ := strings.Cut(got.Body, `"recordingId":"`)
	if got.Status != 200 || len(id) < 36 {
		w.T.Fatalf("a recording: %d %s", got.Status, got.Body)
	}
	return id[:36]
}

// Whoever belongs to an account, by whatever role, is not shown its tests, can
// take none of them, and loses the one they hold.
func TestNobodyTestsForTheirOwnAccount(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.Account("Acme", 500, false)
	both, id := w.Checks("both")
	done := w.test(account, "Done before", 1)
	w.completes(id, w.claimed(id, done), job.ItemPass, "")
	held, waiting := w.test(account, "Held by them", 1), w.test(account, "Waits", 1)
	w.claimed(id, held)
	if got := w.Call(both, "GET", "/workbench", nil).Body; !strings.Contains(got, "Waits") || !strings.Contains(got, "Held by them") || !strings.Contains(got, "Done before") {
		t.Fatal("a stranger is not shown the tests")
	}
	w.Shown(w.Commands.GrantRole(t.Context(), pagetest.Client(""), both.ID, person.Grant{Role: person.Viewer, AccountID: account}))
	if got := w.Call(both, "GET", "/workbench", nil).Body; strings.Contains(got, "Waits") || strings.Contains(got, "Held by them") || strings.Contains(got, "Done before") {
		t.Error("a member is shown tests of their account")
	}
	for _, path := range []string{held, done, waiting} {
		if got := w.Call(both, "GET", "/workbench/jobs/"+path, nil); got.Status != 404 || strings.Contains(got.Body, "Acme") {
			t.Errorf("a member opens a test of their account: %d", got.Status)
		}
	}
	if got := w.Call(both, "POST", "/workbench/claims", pagetest.Form("job", waiting)); got.Status != 404 {
		t.Errorf("a member takes a test of their account: %d", got.Status)
	}
	if got := w.Call(both, "POST", "/workbench/claims", pagetest.Form()); got.Header.Get("Location") != "/workbench" {
		t.Errorf("a member gets as their next test %s", got.Header.Get("Location"))
	}
}

// A stale token says why, and gives back what was written under it.
func TestAStaleClaimSaysWhy(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ann, id := w.Checks("ann")
	jobID := w.test(w.Account("Acme", 100, false), "Checkout", 2)
	first := w.claimed(id, jobID)
	at := "/workbench/jobs/" + jobID
	if got := w.Call(ann, "POST", at+"/release", pagetest.Form("token", strconv.Itoa(first.Token))); got.Header.Get("Location") != "/workbench" {
		t.Fatalf("giving it back: %d", got.Status)
	}
	second := w.claimed(id, jobID)
	typed := "A long note <b>about</b> the card"
	stale := pagetest.Form("token", strconv.Itoa(first.Token), "status", "fail", "note", typed)
	got := w.Call(ann, "POST", at+"/items/"+first.Checklist[0].ID, stale)
	if got.Status != 409 || !strings.Contains(got.Body, "The claim token is stale") || !strings.Contains(got.Body, "A long note &lt;b&gt;about&lt;/b&gt; the card") {
		t.Errorf("a stale token: %d %s", got.Status, got.Body)
	}
	if got := w.Call(ann, "POST", at+"/items/"+first.Checklist[0].ID, stale, "Accept", "application/json"); got.Status != 409 || !strings.Contains(got.Body, `"error":"The claim token is stale."`) {
		t.Errorf("a stale token, to a script: %d %s", got.Status, got.Body)
	}
	if got := w.Call(ann, "POST", at+"/secrets", pagetest.Form("token", strconv.Itoa(first.Token))); strings.Contains(got.Body, secret) {
		t.Error("a stale token shows the login")
	}
	if left := w.draft(id).Checklist[0]; left.Status != job.ItemPending || second.Token == first.Token {
		t.Errorf("a stale verdict counts: %+v", left)
	}
}

// The same form sent twice is one finding, and one claim.
func TestAFormSentTwiceIsOne(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 100, false)
	ann, id := w.Checks("ann")
	jobID := w.test(account, "Checkout", 1)
	once := pagetest.Form("command", uuid.NewString(), "job", jobID)
	for range 2 {
		if got := w.Call(ann, "POST", "/workbench/claims", once); got.Header.Get("Location") != "/workbench/jobs/"+jobID {
			t.Fatalf("a claim: %d", got.Status)
		}
	}
	found := pagetest.Form("command", uuid.NewString(), "token", "1", "description", "The footer overlaps", "status", "fail", "severity", "minor")
	for range 2 {
		if got := w.Call(ann, "POST", "/workbench/jobs/"+jobID+"/findings", found); got.Status != 303 {
			t.Fatalf("a finding: %d", got.Status)
		}
	}
	if c := w.draft(id); len(c.Findings) != 1 || c.Findings[0].Description != "The footer overlaps" || c.Token != 1 {
		t.Errorf("the draft is %+v", c)
	}
}

// Several pictures of an item, and none that was taken away: its link ends, its
// file goes; one that another item shows stays.
func TestPicturesAreTakenAwayForGood(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 100, false)
	ann, id := w.Checks("ann")
	jobID := w.test(account, "Checkout", 2)
	c := w.claimed(id, jobID)
	item := func(n int) string { return "/workbench/jobs/" + jobID + "/items/" + c.Checklist[n].ID }
	for n, shade := range []uint8{1, 2, 2} {
		if got := w.uploads(ann, item(n/2)+"/pictures", c.Token, picture(shade)); got.Status != 303 {
			t.Fatalf("a picture: %d %s", got.Status, got.Body)
		}
	}
	shots := w.draft(id).Checklist[0].Screenshots()
	if len(shots) != 2 || w.draft(id).Checklist[1].Screenshots()[0] != shots[1] {
		t.Fatalf("the pictures are %v", shots)
	}
	link := func(stored string) string {
		path, ok, err := w.Evidence.Path(t.Context(), account, stored)
		if err != nil || !ok {
			t.Fatalf("%s is no evidence: %v", stored, err)
		}
		return path
	}
	first, second := link(shots[0]), link(shots[1])
	for _, stored := range shots {
		if got := w.Call(ann, "POST", item(0)+"/pictures/remove", pagetest.Form("token", "1", "picture", stored)); got.Status != 303 {
			t.Fatalf("taking a picture away: %d", got.Status)
		}
	}
	if got := w.Call(guest{}, "GET", first, nil); got.Status != 404 {
		t.Errorf("a picture that was taken away: %d", got.Status)
	}
	if got := w.Call(guest{}, "GET", second, nil); got.Status != 200 {
		t.Errorf("a picture that another item shows: %d", got.Status)
	}
	if left := w.draft(id).Checklist[0]; len(left.Screenshots()) != 0 || left.Status != job.ItemPending {
		t.Errorf("the item is %+v", left)
	}
	// Sent again, it is there again.
	if got := w.uploads(ann, item(0)+"/pictures", c.Token, picture(1)); got.Status != 303 {
		t.Fatalf("the picture again: %d", got.Status)
	}
	if got := w.Call(guest{}, "GET", first, nil); got.Status != 200 {
		t.Errorf("the picture again: %d", got.Status)
	}
	// Data behind a picture's head count; what stands behind its end is left out.
	const head = 33
	long := binary.BigEndian.AppendUint32(slices.Clone(picture(3)[:head]), 10<<20)
	tooMuch := slices.Concat(long, []byte("IDAT"), make([]byte, 10<<20+4), picture(3)[head:])
	for name, content := range map[string][]byte{"a text": []byte("<script>alert(1)</script>"), "nothing": nil, "too much": tooMuch} {
		if got := w.uploads(ann, item(0)+"/pictures", c.Token, content); got.Status != 422 && got.Status != 413 {
			t.Errorf("%s for a picture: %d", name, got.Status)
		}
	}
	cut := picture(4)[:len(picture(4))-12]
	if got := w.uploads(ann, item(0)+"/pictures", c.Token, cut); got.Status != 422 || !strings.Contains(got.Body, "The picture has no end: it was cut off. Send it again.") {
		t.Errorf("a picture that was cut off: %d %s", got.Status, got.Body)
	}
	if got := w.uploads(ann, item(0)+"/pictures", c.Token+1, picture(9)); got.Status != 409 {
		t.Errorf("a picture under a stale token: %d", got.Status)
	}
}

// What a client and a checker wrote is text, wherever it stands.
func TestHostileWordsStayWords(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}`
	account := w.Account("Acme", 100, false)
	ann, id := w.Checks("ann")
	jobID := w.test(account, evil, 1, func(in *command.SubmitJob) {
		in.Description, in.Feature = evil, evil
		in.Items[0].Description, in.Items[0].ExpectedOutcome = evil, evil
		in.Credentials = &command.Credentials{Username: evil, Password: evil, Notes: evil}
		in.Target = job.Target{Device: evil}
	})
	w.T = t
	look := func(path string) {
		t.Helper()
		got := w.Call(ann, "GET", path, nil)
		if got.Status != 200 || strings.Contains(got.Body, "<script>alert") || strings.Contains(got.Body, "<img src=x") || !strings.Contains(got.Body, "&lt;script&gt;alert(1)") {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	look("/workbench")
	c := w.claimed(id, jobID)
	at := "/workbench/jobs/" + jobID
	if got := w.Call(ann, "POST", at+"/items/"+c.Checklist[0].ID, pagetest.Form("token", "1", "status", "fail", "note", evil)); got.Status != 303 {
		t.Fatalf("a note: %d", got.Status)
	}
	if got := w.Call(ann, "POST", at+"/findings", pagetest.Form("token", "1", "status", "fail", "description", evil, "note", evil)); got.Status != 303 {
		t.Fatalf("a finding: %d", got.Status)
	}
	tab := w.Tab(ann)
	tab.Open(w.Origin + at)
	tab.WaitText("onerror=alert(2)")
	look(at)
	look("/workbench")
	if got := w.Call(ann, "POST", at+"/secrets", pagetest.Form("token", "1")); strings.Contains(got.Body, "<script>alert") || got.Header.Get("Refresh") != "20; url="+at || got.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the login: %v", got.Header)
	}
	tab.Open("about:blank") // it would look at the test while it ends
	if got := w.Call(ann, "POST", at+"/complete", pagetest.Form("token", "1", "summary", evil)); got.Header.Get("Location") != at {
		t.Fatalf("completing: %d", got.Status)
	}
	rating(w, account, jobID, 1, evil)
	look(at)
	look("/workbench")
}

// A checker's whole test without a script, from the queue that fills by itself.
func TestATestWithoutAScript(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.Account("Acme", 100, false)
	ann, id := w.Checks("Ann")
	live := w.Tab(ann) // has a script: its queue keeps itself current
	live.Open(w.Origin + "/")
	live.WaitText("No waiting tests")
	jobID := w.test(account, "Checkout with a card", 3)
	live.WaitText("Checkout with a card")

	tab := w.Tab(ann)
	tab.NoScript()
	tab.Allow("409") // completed too early, once
	tab.Screen(1280, 900, false)
	tab.Open(w.Origin + "/workbench")
	tab.Click("#job-" + jobID + " button")
	tab.WaitText("Buy the cheapest plan")
	live.WaitText("You are testing Checkout with a card")
	c := w.draft(id)
	item := func(n int) string { return "#item-" + c.Checklist[n].ID }
	tab.Click(item(0) + " [value=pass]")
	tab.WaitText("2 items left")
	tab.Click(item(1) + " summary")
	tab.Fill("#note-"+c.Checklist[1].ID, "It shows a white page.")
	tab.Click(item(1) + " [value=fail]")
	tab.WaitText("It shows a white page.")
	tab.Fill("#summary", "The card was charged twice.")
	tab.Click("#complete button")
	tab.WaitText("1 item has no verdict yet.")
	if !strings.Contains(w.Call(ann, "GET", "/workbench/jobs/"+jobID, nil).Body, "1 item left") {
		t.Error("the page does not say what is left")
	}
	tab.Click(item(2) + " [value=skip]")
	tab.WaitText("Nothing left")
	tab.Click(item(2) + " .link")
	tab.WaitText("1 item left")
	tab.Click(item(2) + " [value=skip]")
	tab.WaitText("Nothing left")
	tab.Fill("#summary", "The card was charged twice.")
	tab.Click("#complete button")
	tab.WaitText("Your report is with the client")
	live.WaitText("1 test completed")
	// What a page could not fetch it fetches again: no change is told twice.
	browsertest.Eval[bool](live, `(() => {
		const fetched = window.fetch, bad = [() => Promise.resolve(new Response('', {status: 503})), () => Promise.reject(new TypeError('away'))]
		window.fetch = (...what) => bad.length > 0 ? bad.pop()() : fetched(...what)
		return true
	})()`)
	rating(w, account, jobID, 5, "Exactly what we needed.")
	live.WaitText("Exactly what we needed.")
	eventually.True(t, "the report is there", func() bool {
		r, err := w.Reads.Jobs.Report(t.Context(), account, jobID)
		return err == nil && r.Summary == "The card was charged twice." && r.PassCount == 1 && r.FailCount == 1 && r.SkipCount == 1
	})
}

// A slot of a session waits for the others, and begins with them.
func TestASlotWaitsForItsSession(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 100, false)
	session, err := w.Commands.CreateSession(t.Context(), pagetest.Client(account), command.NewSession{
		Test:  command.HostedTest{Submission: job.Submission{URL: "https://chat.example.com", Feature: "Talk", Source: "session"}, Host: "chat.example.com"},
		Slots: []command.NewSlot{{RoleLabel: "Caller"}, {RoleLabel: "Callee"}},
	})
	w.Shown(session.Position, err)
	var guests []guest
	for n, name := range []string{"ann", "bob"} {
		g, id := w.Checks(name)
		w.claimed(id, session.Slots[n].JobID)
		guests = append(guests, g)
	}
	at := func(n int) string { return "/workbench/jobs/" + session.Slots[n].JobID }
	page := w.Call(guests[0], "GET", at(0), nil)
	if !strings.Contains(page.Body, "The session has not started") || !strings.Contains(page.Body, "You are: Caller") || strings.Contains(page.Body, `value="pass"`) {
		t.Errorf("the lobby: %d", page.Status)
	}
	for n := range 2 {
		if got := w.Call(guests[n], "POST", at(n)+"/ready", pagetest.Form("token", "1")); got.Status != 303 {
			t.Fatalf("ready: %d %s", got.Status, got.Body)
		}
	}
	if got := w.Call(guests[0], "GET", at(0), nil); strings.Contains(got.Body, "The session has not started") || !strings.Contains(got.Body, `value="pass"`) {
		t.Error("the session has not begun for its slot")
	}
	if got := w.Call(guests[1], "POST", at(1)+"/leave", pagetest.Form("token", "1")); got.Header.Get("Location") != "/workbench" {
		t.Errorf("leaving: %d", got.Status)
	}
	if got := w.Call(guests[1], "GET", at(1), nil); got.Status != 404 {
		t.Errorf("who has left is still in: %d", got.Status)
	}
}

// What was just completed is shown as that, however late the read models are.
func TestACompletedTestIsNeverLost(t *testing.T) {
	t.Parallel()
	w := own(t)
	g, checker := w.Checks("Ann")
	c := w.claimed(checker, w.test(w.Account("Acme", 100, false), "Checkout", 1))
	claim := command.Claim{CheckerID: checker, JobID: c.JobID, Token: c.Token}
	_, at, err := w.Commands.CheckItem(t.Context(), pagetest.ByChecker(checker), claim, command.CheckItem{ItemID: c.Checklist[0].ID, Status: job.ItemPass})
	w.Shown(at, err)
	release := pgtest.HoldUp(t, w.DB, "readmodel.jobs")
	_, _, err = w.Commands.CompleteJob(t.Context(), pagetest.ByChecker(checker), claim, command.CompleteJob{Summary: "Fine."})
	w.Must(err)
	later := time.AfterFunc(200*time.Millisecond, release)
	defer later.Stop()
	if got := w.Call(g, "GET", "/workbench/jobs/"+c.JobID, nil); got.Status != 200 || !strings.Contains(got.Body, "Your report is with the client") || !strings.Contains(got.Body, "Take the next test") {
		t.Errorf("just completed: %d", got.Status)
	}
}
