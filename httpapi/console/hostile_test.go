package console_test

import (
	"flag"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/room"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/workbench"
	"humanqa/internal/testing/pagetest"
)

var (
	hostileSeed  = flag.Uint64("hostile.seed", 1, "seed of the hostile requests for pages")
	hostileCount = flag.Int("hostile.count", 400, "how many hostile requests for pages are sent")
)

// attack makes requests that no honest browser would send.
type attack struct {
	*rand.Rand
	world
	fields       []string // names of fields of all forms
	own, foreign cast
	guests       map[string]guest
}

// cast is an account with a bit of everything. ids are by the kind of page that shows them.
type cast struct {
	account string
	ids     map[string]string
	item    string // of the job
	token   string // of the claim
}

const foreignSecret = "top-secret-of-globex"

func pickOf[T any](a *attack, from ...T) T { return from[a.IntN(len(from))] }

// prepares gives an account a project, jobs, a batch, a session and a claim of the checker.
func (a *attack) prepares(name, secret, checkerID string) cast {
	a.T.Helper()
	t, c := a.T, cast{account: a.Account(name, 500, false)}
	by := pagetest.Client(c.account)
	project, err := a.Commands.CreateProject(t.Context(), by, command.CreateProject{Name: secret, WebhookURL: "https://hooks.example.com/" + secret})
	a.Shown(project.Position, err)
	submission := command.SubmitJob{
		Submission: job.Submission{URL: "https://shop.example.com/" + secret, Title: secret, Type: job.GeneralQA, Source: "api", ProjectID: project.ProjectID},
		Items:      []command.NewItem{{Description: secret + " item", Severity: job.Major}, {Description: "Another", Severity: job.Minor}},
	}
	claimed, err := a.Commands.SubmitJob(t.Context(), by, submission)
	a.Shown(claimed.Position, err)
	claim, err := a.Commands.ClaimJob(t.Context(), pagetest.ByChecker(checkerID), checkerID, claimed.JobID)
	a.Shown(claim.Position, err)
	waiting, err := a.Commands.SubmitJob(t.Context(), by, submission)
	a.Shown(waiting.Position, err)
	batch, err := a.Commands.SubmitBulk(t.Context(), by, []command.SubmitJob{submission, submission})
	a.Shown(batch.Position, err)
	session, err := a.Commands.CreateSession(t.Context(), by, command.NewSession{
		Test:  command.HostedTest{Submission: job.Submission{URL: "https://chat.example.com/" + secret, Source: "session"}, Host: "chat.example.com"},
		Slots: []command.NewSlot{{}, {}},
	})
	a.Shown(session.Position, err)
	c.item, c.token = claim.Checklist[0].ID, "1"
	c.ids = map[string]string{
		"jobs": pickOf(a, claimed.JobID, waiting.JobID, batch.JobIDs[0]), "claimed": claimed.JobID, "projects": project.ProjectID, "batches": batch.BatchID,
		"sessions": session.SessionID, "accounts": c.account, "checkers": checkerID,
	}
	return c
}

// hostileValues leave U+FFFD out, which a text may hold: an event that holds it shows that
// a form replaced bytes that are no UTF-8.
var hostileValues = []string{
	"", " ", "x", "1", "0", "-1", "99999999999999999999", "1e300", "on", "true", "pass", "fail", "skip", "owner", "checker", "operator", "active", "disabled",
	"https://example.com/", "http://127.0.0.1:5432/", "https://[::ffff:10.0.0.1]/", "https://exa mple.com", "javascript:alert(1)", "//evil.example", `/\evil.example`,
	"Payment Flow", "CRITICAL", "blocked", "no_access", "job.completed", "2026-01-01", "0000-01-01", "9999-12-31T23:59:59+23:59", "a@example.com",
	"'; DROP TABLE jobs; --", "<script>alert(1)</script>", "\x00", "a\xffb", "\xed\xa0\x80", "\u202e", "a\r\nSet-Cookie: x=1", "../../etc/passwd", "%00", "{{7*7}}", "🧨",
	strings.Repeat("ü", 5001), strings.Repeat("a line\n", 300), `{"a":[1,2,{"b":null}]}`, "[]", `{"id":"x"`,
}

// value is often an id, of whichever account.
func (a *attack) value() string {
	switch a.IntN(8) {
	case 0:
		return pickOf(a, slices.Sorted(maps.Values(a.own.ids))...)
	case 1:
		return pickOf(a, slices.Sorted(maps.Values(a.foreign.ids))...)
	case 2:
		return uuid.NewString()
	}
	return pickOf(a, hostileValues...)
}

// path fills the pattern's wildcards, mostly with what is there.
func (a *attack) path(pattern string) string {
	kind := strings.Split(pattern, "/")[min(2, strings.Count(pattern, "/"))]
	from := a.own
	if a.IntN(4) == 0 {
		from = a.foreign
	}
	id := from.ids[kind]
	if kind == "jobs" && strings.HasPrefix(pattern, "/workbench/") {
		id = from.ids["claimed"]
	}
	wrong := pickOf(a, "%00", "a%00b", "%FF", "%2e%2e", "x%2Fy", "'", "%F0%9F%A7%A8", uuid.NewString(), strings.Repeat("9", 40), strings.Repeat("x", 900), "none")
	if id == "" || a.IntN(8) == 0 {
		id = wrong
	}
	item := from.item
	if a.IntN(4) == 0 {
		item = wrong
	}
	path := strings.NewReplacer(
		"{id}", id, "{item}", item, "{stream}", pickOf(a, "job-"+from.ids["claimed"], "credits-"+from.account, wrong),
		"{person}", pickOf(a, a.guests["viewer"].ID, a.guests["owner"].ID, wrong), "{format}", pickOf(a, "md", "junit", "ctrf", "json", wrong),
		"{name}", pickOf(a, "jobs", "nope", wrong), "{$}", "",
	).Replace(pattern)
	for strings.Contains(path, "{") { // tokens, pieces of evidence, recordings, films
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + wrong + after
	}
	if a.IntN(3) == 0 {
		query := url.Values{}
		for range a.IntN(4) {
			query.Set(pickOf(a, append([]string{"page", "q", "status", "after", "before", "from", "to", "next", "show", "act", "by"}, a.fields...)...), a.value())
		}
		path += "?" + query.Encode()
	}
	return path
}

// form has some of the fields that forms have, or all; most have the claim's token.
func (a *attack) form() url.Values {
	form := pagetest.Form("command", uuid.NewString(), "token", a.own.token, "reason", "why not")
	few := a.IntN(3) > 0
	for _, name := range a.fields {
		if !few || a.IntN(6) == 0 {
			form.Set(name, a.value())
		}
	}
	if a.IntN(12) == 0 {
		form.Set(pickOf(a, "command", "token", "\x00", "__proto__", ""), a.value())
	}
	return form
}

// as picks the person who sends: mostly one whom the page is for.
func (a *attack) as(p ui.Page) (name string) {
	fits := map[ui.Audience][]string{
		ui.Anybody: {"nobody", "owner"}, ui.SignedIn: {"viewer", "owner", "checker", "operator"}, ui.Viewers: {"viewer", "developer", "owner"},
		ui.Developers: {"developer", "owner"}, ui.Owners: {"owner"}, ui.Checkers: {"checker"}, ui.Operators: {"operator"},
	}
	if a.IntN(10) == 0 {
		return pickOf(a, slices.Sorted(maps.Keys(a.guests))...)
	}
	return pickOf(a, fits[p.For]...)
}

// renews gives the requests accounts and people whom none of the earlier ones harmed.
func (a *attack) renews() {
	a.T.Helper()
	checker, checkerID := a.Checks("Ann")
	_, otherChecker := a.Checks("Bob")
	a.own, a.foreign = a.prepares("Acme", "plain-words-of-acme", checkerID), a.prepares("Globex", foreignSecret, otherChecker)
	a.guests = map[string]guest{"nobody": {}, "checker": checker, "operator": a.operates("Oscar")}
	for _, role := range []person.Role{person.Viewer, person.Developer, person.Owner} {
		a.guests[string(role)] = a.Joined(string(role), person.Grant{Role: role, AccountID: a.own.account})
	}
	a.guests["other"] = a.Joined("other", person.Grant{Role: person.Owner, AccountID: a.foreign.account})
}

// Random requests for every page and form, by each kind of person: no page breaks, none
// shows what belongs to another account, no text reaches the log that cannot be shown, and
// every read model goes on.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	w := setupWith(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
		return []fs.FS{room.Templates, workbench.Templates}, append(
			room.Pages(room.Deps{Commands: s.Commands, Reads: s.Reads, Evidence: s.Evidence, Changes: s.Changes, Now: time.Now}),
			workbench.Pages(workbench.Deps{Commands: s.Commands, Reads: s.Reads, Evidence: s.Evidence, Now: time.Now})...)
	})
	a := &attack{Rand: rand.New(rand.NewPCG(*hostileSeed, 1)), world: w, fields: w.Fields()}
	from, err := w.Log.Head(t.Context())
	w.Must(err)
	table, codes, reached := w.Site.Pages, map[int]int{}, map[string]bool{}
	const renewedAfter = 200 // requests: some of them end a session, or an account
	for i := range *hostileCount {
		if i%renewedAfter == 0 {
			a.renews()
		}
		p := table[(i*7919+i/len(table))%len(table)]
		if p.Takes {
			continue // the room's socket has tests of its own
		}
		who, path := a.as(p), a.path(p.Pattern)
		headers, body := []string{"Sec-Fetch-Site", "same-origin"}, ""
		if p.Method == http.MethodPost {
			form := a.form()
			if body = form.Encode(); p.Upload {
				before, _, _ := strings.Cut(path, "?")
				path, body = before+"?"+body, pickOf(a, "", "not a picture", "\x89PNG\r\n\x1a\n", "\x1a\x45\xdf\xa3\x01")
			}
			headers = append(headers, "Content-Type", pickOf(a, "application/x-www-form-urlencoded", "application/x-www-form-urlencoded", "application/x-www-form-urlencoded",
				"application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary=x", "application/json", "image/png", ""))
		}
		if a.IntN(20) == 0 {
			headers[1] = "cross-site"
		}
		got := w.Send(a.guests[who], p.Method, path, strings.NewReader(body), headers...)
		codes[got.Status]++
		if got.Status < 400 {
			reached[p.Method+" "+p.Pattern] = true
		}
		if got.Status >= 500 {
			t.Fatalf("seed %d, request %d as %s: %s %.300s with %.2000q: %d %.500s", *hostileSeed, i, who, p.Method, path, body, got.Status, got.Body)
		}
		if shows := who != "operator" && who != "other" && p.For != ui.Checkers; shows && strings.Contains(got.Body, foreignSecret) {
			t.Fatalf("seed %d, request %d: %s %.300s shows %s what belongs to another account", *hostileSeed, i, p.Method, path, who)
		}
		if to := got.Header.Get("Location"); to != "" && !strings.HasPrefix(to, w.Origin+"/") && !localPath(to) && !strings.HasPrefix(to, w.BaseURL+"/") {
			t.Fatalf("seed %d, request %d: %s %.300s leads to %q", *hostileSeed, i, p.Method, path, to)
		}
	}
	w.Sound(from, strings.Repeat("ü", 5001))
	t.Logf("hostile requests: seed %d, %d sent over %d pages (%d answered well), %v", *hostileSeed, *hostileCount, len(table), len(reached), codes)
	for _, want := range []int{200, 303, 403, 404, 422} {
		if codes[want] == 0 && *hostileCount >= 400 {
			t.Errorf("no answer was %d: the requests are not hostile enough, or too much so", want)
		}
	}
}

// localPath says whether a browser stays on the site that led it there.
func localPath(to string) bool {
	return strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") && !strings.HasPrefix(to, `/\`)
}
