package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/must"
	"humanqa/projections/events"
)

var asOfSteps = flag.Int("asof.steps", 12, "how long the histories are that asOf is asked of; of more than 12 every answer is compared")

// then is what was answered right after something happened.
type then struct {
	cursor  string
	at      time.Time
	whose   *pastAccount      // who did it
	answers map[string]string // by target; of every account
	named   map[string]string // the position that an answer names, by target
}

// pastAccount is one whose past is asked for.
type pastAccount struct {
	key, accountID    string
	project           string
	targets           []string
	jobs, pending     []string
	sessions, batches []string
	committed         []string // jobs whose verdict is told at a commit
	steps             []func()
}

// random histories of everything that reads show.
type histories struct {
	*service
	dice    *rand.Rand
	checker string
	moments []then
}

func (h *histories) pick(of []string) string { return of[h.dice.IntN(len(of))] }

func (h *histories) shows(a *pastAccount, job string) {
	a.jobs = append(a.jobs, job)
	path := "/v1/jobs/" + job
	a.targets = append(a.targets, path, path+"/report", path+"/ai-report", "/v1/hosted/status/"+job)
}

func (h *histories) open(accountID, key string) *pastAccount {
	a := &pastAccount{key: key, accountID: accountID}
	a.project = h.project(key, `{"name":"p"}`)
	a.targets = append(a.targets,
		"/v1/credits", "/v1/credits/ledger", "/v1/credits/ledger?limit=2", "/v1/credits/statement", "/v1/projects", "/v1/projects?limit=1&offset=1",
		"/v1/projects/"+a.project, "/v1/projects/"+a.project+"/history",
		"/v1/jobs", "/v1/jobs?limit=2&offset=1", "/v1/jobs?projectId="+a.project, "/v1/jobs?since="+time.Now().UTC().Add(2*time.Second).Format(time.RFC3339),
		"/v1/jobs?status=pending", "/v1/jobs?status=pending&limit=1&offset=1", "/v1/jobs?status=claimed", "/v1/jobs?status=completed", "/v1/jobs?status=cancelled&limit=1",
		"/v1/hosted/sessions", "/v1/hosted/sessions?status=lobby", "/v1/hosted/sessions?limit=1&offset=1",
		"/v1/analytics/pass-rate", "/v1/analytics/pass-rate?by=project,jobType", "/v1/analytics/pass-rate?by=week",
		"/v1/exports/jobs", "/v1/exports/items?format=csv", "/v1/exports/tests", "/v1/exports/ledger", "/v1/exports/projects", "/v1/exports/accounts",
	)
	const items = `"checklistItems":[{"description":"a"},{"description":"b","severity":"minor"}]`
	submit := func() {
		body := jobWith(items)
		if h.dice.IntN(3) > 0 {
			body = jobWith(`"projectId":"` + a.project + `",` + items)
		}
		id, _ := h.call(key, "POST", "/v1/jobs", body).want(http.StatusCreated)["jobId"].(string)
		h.shows(a, id)
		a.pending = append(a.pending, id)
	}
	a.steps = []func(){
		submit, submit,
		func() {
			r := h.call(key, "POST", "/v1/jobs/bulk", `{"jobs":[`+jobWith(items)+`,`+jobWith(`"projectId":"`+a.project+`"`)+`]}`).want(http.StatusCreated)
			id := fmt.Sprint(r["batchId"])
			a.batches = append(a.batches, id)
			a.targets = append(a.targets, "/v1/jobs/bulk/"+id, "/v1/jobs/bulk/"+id+"/report", "/v1/jobs/report?ids="+strings.Join(texts(r["jobIds"]), ","))
			for _, job := range r["jobIds"].([]any) {
				h.shows(a, job.(string))
			}
		},
		func() { h.call(key, "POST", "/v1/jobs/"+h.pick(a.jobs)+"/cancel", "") },
		func() {
			h.call(key, "POST", "/v1/jobs/"+h.pick(a.jobs)+"/rating", fmt.Sprintf(`{"rating":%d}`, 1+h.dice.IntN(5)))
		},
		func() { h.call(key, "POST", "/v1/jobs/"+h.pick(a.jobs)+"/retest", "") },
		func() {
			h.call(key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+a.project+`","fixedDescriptions":["a","`+h.pick(a.jobs)+`"]}`)
		},
		func() { // two tests with one verdict at a commit
			status := fmt.Sprintf(`"commitStatus":{"repository":"acme/shop","commit":"%040x"}`, len(a.jobs))
			token := []string{"taken", commandtest.RefusedToken}[h.dice.IntN(2)]
			body := `{"jobs":[` + jobWith(items) + `,` + jobWith(items) + `],` + status + `}`
			for _, job := range h.call(key, "POST", "/v1/jobs/bulk", body, "X-Commit-Token", token).want(http.StatusCreated)["jobIds"].([]any) {
				h.shows(a, job.(string))
				a.committed = append(a.committed, job.(string))
			}
		},
		func() {
			if len(a.committed) > 0 {
				at, err := h.commands.TellCommit(h.t.Context(), operator(uuid.New()), h.pick(a.committed))
				h.visible(at, err)
			}
		},
		func() { // takes prepared fixes along
			id, _ := h.call(key, "POST", "/v1/hosted/test", `{"url":"https://shop.example.com/","jobType":"General QA"}`).want(http.StatusCreated)["jobId"].(string)
			h.shows(a, id)
		},
		func() {
			h.call(key, "PATCH", "/v1/projects/"+a.project, fmt.Sprintf(`{"name":"p%d","defaultUrl":"https://shop.example.com/","webhookUrl":"https://hooks.example.com/%d"}`, h.dice.IntN(9), h.dice.IntN(2)))
		},
		func() { h.project(key, `{"name":"another"}`) },
		func() {
			if len(a.sessions) > 0 && h.dice.IntN(2) == 0 {
				h.call(key, "POST", "/v1/hosted/sessions/"+h.pick(a.sessions)+"/cancel", "")
				return
			}
			id, _ := h.call(key, "POST", "/v1/hosted/sessions", `{"url":"https://shop.example.com/","slots":[{},{}]}`).want(http.StatusCreated)["sessionId"].(string)
			a.sessions = append(a.sessions, id)
			a.targets = append(a.targets, "/v1/hosted/sessions/"+id)
		},
		func() {
			soon := time.Now().Add(10 * 24 * time.Hour)
			_, at, err := h.commands.GrantCredits(h.t.Context(), operator(uuid.New()), a.accountID, 20, &soon, "more")
			h.visible(at, err)
		},
	}
	return a
}

// Whatever was answered then, asOf answers now: after random histories of a sandbox
// and of an account that people test for, by cursor, by time, and by the position that the
// answer named.
func TestAsOfAnswersWhatWasAnsweredThen(t *testing.T) {
	t.Parallel()
	s := own(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := &histories{service: s, dice: rand.New(rand.NewPCG(seed, 1)), checker: s.checker()}

	box := h.open(s.sandbox())
	_, at, err := h.commands.GrantCredits(t.Context(), operator(uuid.New()), box.accountID, 100_000, nil, "more than it spends")
	h.visible(at, err)
	box.steps = append(box.steps, func() {
		h.call(box.key, "POST", "/v1/sandbox/jobs/"+h.pick(box.jobs)+"/play", []string{`{"results":[]}`, `{"results":[{"item":"item-1","status":"fail","note":"no"}]}`}[h.dice.IntN(2)])
	}, func() {
		if len(box.sessions) > 0 {
			h.call(box.key, "POST", "/v1/sandbox/sessions/"+h.pick(box.sessions)+"/ready", "")
		}
	})
	people := h.open(s.account(100_000))
	people.steps = append(people.steps, h.works(people), h.works(people), h.works(people), h.works(people))
	accounts := []*pastAccount{box, people}
	for _, a := range accounts {
		for range 2 {
			a.steps[0]()
		}
	}
	for range *asOfSteps {
		a := accounts[h.dice.IntN(2)]
		if a == box { // each step has a millisecond of its own
			s.call(box.key, "POST", "/v1/sandbox/clock/advance", fmt.Sprintf(`{"seconds":%d}`, 1+h.dice.IntN(900))).want(http.StatusOK)
		}
		a.steps[h.dice.IntN(len(a.steps))]()
		h.record(a, accounts)
	}
	compared, named := 0, 0
	for i, m := range h.moments {
		for _, a := range accounts {
			for _, target := range h.some(a.targets) {
				h.same(a, i, target, m.cursor)
				if place := m.named[a.accountID+target]; place != "" {
					h.same(a, i, target, place)
					named++
				}
				if a == m.whose {
					h.same(a, i, target, m.at.UTC().Format("2006-01-02T15:04:05.000000000Z")) // with its zeros: a whole second, too
				}
				compared++
			}
		}
	}
	t.Logf("%d moments, %d answers compared, of which %d name their position", len(h.moments), compared, named)
	if named < compared/4 { // exports name none, and neither do refusals
		t.Errorf("of %d answers only %d name their position", compared, named)
	}
	h.wrong(people)
}

// What a history of the past reads does not grow with the project's jobs: their
// streams would be many times what it shows.
func TestAHistoryOfThePastReadsFewStreams(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(200)
	project := s.project(key, `{"name":"p"}`)
	job := jobWith(`"projectId":"` + project + `","checklistItems":[{"description":"a"}]`)
	ids, _ := s.call(key, "POST", "/v1/jobs/bulk", `{"jobs":[`+job+strings.Repeat(","+job, 19)+`]}`).want(http.StatusCreated)["jobIds"].([]any)
	for _, id := range ids[:3] {
		s.complete(id.(string))
	}
	head := s.log.Head()
	s.visible(head, nil)
	for target, most := range map[string]int{"/v1/projects/" + project + "/history": 3, "/v1/jobs?limit=2": 3, "/v1/jobs?status=completed": 3, "/v1/projects/" + project: 1} {
		sep := map[bool]string{true: "&", false: "?"}[strings.Contains(target, "?")]
		before := s.log.Loads()
		s.call(key, "GET", fmt.Sprintf("%s%sasOf=%d-%d", target, sep, head.Commit, head.Prepare), "").want(http.StatusOK)
		if n := s.log.Loads() - before; n > most {
			t.Errorf("%s reads %d streams", target, n)
		}
	}
}

// What a read of an early moment reads of the log does not grow with the jobs that came later.
func TestAMomentReadsNoneOfTheJobsThatCameLater(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(500)
	project := s.project(key, `{"name":"p"}`)
	job := jobWith(`"projectId":"` + project + `","checklistItems":[{"description":"a"}]`)
	bulk := `{"jobs":[` + job + strings.Repeat(","+job, 19) + `]}`
	ids, _ := s.call(key, "POST", "/v1/jobs/bulk", bulk).want(http.StatusCreated)["jobIds"].([]any)
	for _, id := range ids[:12] {
		s.complete(id.(string))
	}
	all := s.log.All()
	last := all[len(all)-1]
	s.visible(last.Position, nil)
	ask := func() (loads map[string]int, answers map[string]string) {
		loads, answers = map[string]int{}, map[string]string{}
		for _, target := range []string{
			"/v1/exports/jobs", "/v1/exports/items", "/v1/exports/tests", "/v1/exports/ledger", "/v1/exports/projects", "/v1/jobs", "/v1/jobs?status=pending",
			"/v1/credits", "/v1/credits/ledger", "/v1/credits/statement", "/v1/projects", "/v1/projects/" + project + "/history", "/v1/analytics/pass-rate",
		} {
			for _, place := range []string{events.CursorAt(last.Position), last.Meta.Time.Format(time.RFC3339Nano)} {
				asked := target + map[bool]string{true: "&", false: "?"}[strings.Contains(target, "?")] + "asOf=" + place
				before := s.log.Loads()
				r := s.call(key, "GET", asked, "")
				equal(t, r.Code, http.StatusOK)
				loads[asked], answers[asked] = s.log.Loads()-before, r.Body.String()
			}
		}
		return loads, answers
	}
	loads, answers := ask()
	for what, most := range map[string]int{"/v1/exports/jobs": 9, "/v1/jobs?status=pending": 8, "/v1/credits": 3} {
		if n := loads[what+map[bool]string{true: "&", false: "?"}[strings.Contains(what, "?")]+"asOf="+events.CursorAt(last.Position)]; n > most {
			t.Errorf("%s loads %d streams", what, n)
		}
	}
	for range 4 {
		s.call(key, "POST", "/v1/jobs/bulk", bulk).want(http.StatusCreated)
	}
	later, same := ask()
	equal(t, later, loads)
	equal(t, same, answers)
}

// A feed that is behind does not know what had become of jobs: no answer is better
// than a wrong one.
func TestThePastIsNotToldWhileTheFeedIsBehind(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(10)
	d := s.deps
	d.FeedShown = func(context.Context) error { return errors.New("stopped") }
	behind := *s
	behind.API = New(d)
	behind.call(key, "GET", "/v1/jobs?asOf=2001-01-01", "").refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	s.call(key, "GET", "/v1/jobs?asOf=2001-01-01", "").want(http.StatusOK)
}

// works claims, checks, gives back or completes what people test, step by step.
func (h *histories) works(a *pastAccount) func() {
	var w *work
	return func() {
		switch {
		case w == nil && len(a.pending) > 0:
			id := a.pending[0]
			a.pending = a.pending[1:]
			if status := h.call(a.key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)["status"]; status == "pending" {
				w = h.claims(h.service.checker(), id)
			}
		case w == nil:
		case h.dice.IntN(4) == 0:
			if w.call("POST", "/release", "").Code == http.StatusOK {
				a.pending = append(a.pending, w.jobID)
			}
			w = nil
		case h.dice.IntN(3) > 0:
			w.check(h.dice.IntN(len(w.items)), []string{passes, fails, skips}[h.dice.IntN(3)])
		default:
			for i := range w.items {
				w.check(i, []string{passes, fails}[h.dice.IntN(2)])
			}
			w.completes("done")
			if h.dice.IntN(2) == 0 {
				h.analysed(a.accountID, w.jobID)
			}
			w = nil
		}
	}
}

// record keeps what everybody is answered now.
func (h *histories) record(by *pastAccount, accounts []*pastAccount) {
	head := h.log.Head()
	h.visible(head, nil)
	all := h.log.All()
	m := then{cursor: fmt.Sprintf("%d-%d", head.Commit, head.Prepare), at: all[len(all)-1].Meta.Time, whose: by, answers: map[string]string{}, named: map[string]string{}}
	for _, a := range accounts {
		for _, target := range a.targets {
			r := h.call(a.key, "GET", target, "")
			m.answers[a.accountID+target], m.named[a.accountID+target] = timeless(r), r.Header().Get("X-Log-Position")
		}
	}
	h.moments = append(h.moments, m)
}

// some are all, or, where the suite asks, a few.
func (h *histories) some(targets []string) []string {
	if *asOfSteps > 12 {
		return targets
	}
	targets = slices.Clone(targets)
	h.dice.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	return targets[:min(len(targets), 12)]
}

func (h *histories) same(a *pastAccount, i int, target, place string) {
	h.t.Helper()
	want, asked := h.moments[i].answers[a.accountID+target]
	if !asked {
		want = "404" // it came later
	}
	sep := "?"
	if strings.Contains(target, "?") {
		sep = "&"
	}
	r := h.call(a.key, "GET", target+sep+"asOf="+place, "")
	if got := timeless(r); got != want {
		h.t.Errorf("moment %d, %s%sasOf=%s:\ngot  %s\nthen %s", i, target, sep, place, got, want)
	}
	if strings.HasPrefix(r.Header().Get("Content-Type"), "application/json") && r.Code == http.StatusOK {
		var body map[string]any
		err := json.Unmarshal(r.Body.Bytes(), &body)
		if echo, _ := body["asOf"].(string); err != nil || echo != place && (echo == "" || !strings.HasPrefix(place, echo[:20])) {
			h.t.Errorf("asOf is not echoed: %s", r.Body)
		}
	}
}

// wrong places are refused, before the beginning there was nothing, and another
// account's past is none.
func (h *histories) wrong(a *pastAccount) {
	h.t.Helper()
	head := h.log.Head()
	for _, place := range []string{"yesterday", "0-0", "2999-01-01", "1-", fmt.Sprintf("%d-%d", head.Commit+1, head.Prepare+1), "9999999999999999999-1"} {
		for _, target := range a.targets[:4] {
			equal(h.t, h.call(a.key, "GET", strings.Split(target, "?")[0]+"?asOf="+place, "").paths(), []string{"asOf"})
		}
	}
	equal(h.t, h.call(a.key, "GET", "/v1/jobs?limit=x&asOf=y", "").paths(), []string{"asOf", "limit"})
	equal(h.t, h.call(a.key, "GET", "/v1/hosted/status/"+a.jobs[0]+"?wait=1&asOf=2001-01-01", "").paths(), []string{"wait"})
	for _, target := range []string{"/v1/jobs/" + a.jobs[0], "/v1/jobs/" + a.jobs[0] + "/report", "/v1/projects/" + a.project, "/v1/projects/" + a.project + "/history"} {
		h.call(a.key, "GET", target+"?asOf=2001-01-01", "").refused(http.StatusNotFound, domain.CodeNotFound)
		_, other := h.account(0)
		h.call(other, "GET", target+"?asOf="+h.moments[len(h.moments)-1].cursor, "").refused(http.StatusNotFound, domain.CodeNotFound)
	}
	equal(h.t, h.call(a.key, "GET", "/v1/jobs?asOf=2001-01-01", "").want(http.StatusOK)["total"], any(0.0))
}

// timeless is an answer without what asOf adds, and without what the log does not
// know; a refusal is its status.
func timeless(r result) string {
	r.t.Helper()
	if r.Code >= 300 {
		return fmt.Sprint(r.Code)
	}
	if !strings.HasPrefix(r.Header().Get("Content-Type"), "application/json") {
		return r.Body.String()
	}
	var fields map[string]any
	must.NoError(r.t, json.Unmarshal(r.Body.Bytes(), &fields))
	maps.DeleteFunc(fields, func(name string, _ any) bool { return name == "asOf" })
	projects, _ := fields["projects"].([]any)
	for _, p := range append(projects, fields) {
		if p, ok := p.(map[string]any); ok {
			delete(p, "webhookHealth")
			delete(p, "webhookSecretPreviousValidUntil")
		}
	}
	out, err := domain.EncodeJSON(fields)
	must.NoError(r.t, err)
	return fmt.Sprint(r.Code, string(out))
}
