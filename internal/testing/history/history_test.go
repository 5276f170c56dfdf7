package history_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/history"
	"humanqa/internal/testing/must"
)

const (
	price   = 5
	granted = 12
)

// told is a history of one account and one job, one call after the other.
type told struct {
	*history.History
	now int64
}

func begin() *told {
	h := &told{History: history.New(price)}
	h.Open("acme", granted)
	return h
}

// then adds a call after all others; edit may place it elsewhere.
func (h *told) then(c history.Call, edit ...func(*history.Call)) *told {
	h.now += 10
	c.Account, c.Begin, c.End = "acme", h.now, h.now+5
	if c.Outcome == "" {
		c.Outcome = history.Done
	}
	if c.Kind == history.Submit && c.Key == "" {
		c.Key = c.Job
	}
	for _, e := range edit {
		e(&c)
	}
	h.Add(c)
	return h
}

func submit(job string) history.Call { return history.Call{Kind: history.Submit, Job: job} }
func cancel(job string) history.Call { return history.Call{Kind: history.Cancel, Job: job} }
func read(job, status string) history.Call {
	return history.Call{Kind: history.ReadJob, Job: job, Status: status}
}
func credits(used int) history.Call {
	return history.Call{Kind: history.ReadCredits, Used: used, Available: granted - used}
}
func by(checker string, kind history.Kind, token int) history.Call {
	return history.Call{Kind: kind, Job: "a", Checker: checker, Token: token}
}

func ended(o history.Outcome) func(*history.Call) { return func(c *history.Call) { c.Outcome = o } }
func short(lacking int) func(*history.Call) {
	return func(c *history.Call) { c.Outcome, c.Lacking, c.Job, c.Key = history.Short, lacking, "", "short" }
}

// from has the call begin at a moment, and so run beside others.
func from(at int64) func(*history.Call) { return func(c *history.Call) { c.Begin = at } }

func never(string) bool { return false }

func names(faults []history.Fault) (all []string) {
	for _, f := range faults {
		all = append(all, f.Name)
	}
	return all
}

// Each history is a possible one.
func TestPossibleHistoriesAreTaken(t *testing.T) {
	t.Parallel()
	late := func(request string) bool { return request == "late" }
	gave := begin()
	gave.GaveBack("acme")
	slow := func(c *history.Call) { c.Request = "late" }
	for name, h := range map[string]*told{
		"a job's life": begin().then(submit("a")).then(read("a", "pending")).then(by("ann", history.Claim, 1)).
			then(by("bob", history.Claim, 0), ended(history.Refused)).then(read("a", "claimed")).
			then(by("ann", history.Release, 1)).then(by("bob", history.Claim, 2)).
			then(cancel("a"), ended(history.Refused)).then(by("bob", history.Complete, 2)).
			then(by("bob", history.Complete, 2)).then(read("a", "completed")).then(credits(5)),
		"a cancel, and its repeat": begin().then(submit("a")).then(cancel("a")).then(cancel("a")).
			then(read("a", "cancelled")).then(credits(0)),
		"too little": begin().then(submit("a")).then(submit("b")).then(submit(""), short(3)).
			then(cancel("b")).then(submit("c")).then(credits(10)),
		"a submission with repeats": begin().then(submit("a"), ended(history.Unknown)).then(submit("a")).then(submit("a")).then(credits(5)),
		"a claim without an answer that came later": begin().then(submit("a")).
			then(by("ann", history.Claim, 0), ended(history.Unknown)).then(read("a", "pending")).
			then(by("bob", history.Claim, 0), ended(history.Refused)).then(by("ann", history.Claim, 1)),
		"a cancel without an answer that came never": begin().then(submit("a")).then(cancel("a"), ended(history.Unknown)).
			then(by("ann", history.Claim, 1)).then(by("ann", history.Complete, 1)).then(read("a", "completed")).then(credits(5)),
		"an answer before the read models": begin().then(submit("a")).then(cancel("a"), slow).
			then(read("a", "pending")).then(credits(5)).then(read("a", "cancelled")).then(credits(0)),
		"a refusal by what no read shows yet": begin().then(submit("a")).then(by("ann", history.Claim, 0), ended(history.Refused)).
			then(read("a", "pending")).then(cancel("a"), from(12)).then(read("a", "cancelled")),
		"a charge that was given back": begin().then(submit("a"), ended(history.Abandoned)).then(credits(0)),
		"a slow submission that was charged twice, refunded in between": gave.
			then(submit("a"), func(c *history.Call) { c.End = 40e9 }).
			then(credits(5)).then(credits(0)).then(credits(5), func(c *history.Call) { c.Begin, c.End = 41e9, 42e9 }),
	} {
		if faults := h.Faults(late); len(faults) > 0 {
			t.Errorf("%s: %s is refused", name, names(faults))
		}
	}
}

// Each history was doctored, and is refused by the model that it breaks.
func TestImpossibleHistoriesAreRefused(t *testing.T) {
	t.Parallel()
	job, ledger := "job a", "ledger of acme"
	for name, c := range map[string]struct {
		h     *told
		broke string
	}{
		"a double charge": {begin().then(submit("a")).then(credits(10)), ledger},
		"a slow submission that was charged twice, with nothing given back": {begin().
			then(submit("a"), func(c *history.Call) { c.End = 40e9 }).then(credits(5)).then(credits(0)), ledger},
		"a double refund":                {begin().then(submit("a")).then(submit("b")).then(cancel("a")).then(credits(0)), ledger},
		"a charge that is lost":          {begin().then(submit("a")).then(credits(0)), ledger},
		"a stale balance":                {begin().then(submit("a")).then(cancel("a")).then(credits(5)), ledger},
		"a sum that is wrong":            {begin().then(history.Call{Kind: history.ReadCredits, Used: 0, Available: 7}), ledger},
		"a balance below zero":           {begin().then(submit("a")).then(submit("b")).then(submit("c")), ledger},
		"too little with enough credits": {begin().then(submit("a")).then(submit(""), short(3)), ledger},
		"too little by a wrong amount":   {begin().then(submit("a")).then(submit("b")).then(submit(""), short(4)), ledger},
		"a balance that goes back": {begin().then(submit("a"), func(c *history.Call) { c.End = 1000 }).then(credits(5)).
			then(credits(0)), ledger},
		"a lost cancel": {begin().then(submit("a")).then(cancel("a")).then(by("ann", history.Claim, 1)).
			then(by("ann", history.Complete, 1)), job},
		"a stale read":                        {begin().then(submit("a")).then(cancel("a")).then(read("a", "pending")), job},
		"a lost job":                          {begin().then(submit("a")).then(read("a", ""), ended(history.Absent)), job},
		"a read that goes back":               {begin().then(submit("a")).then(cancel("a"), func(c *history.Call) { c.End = 1000 }).then(read("a", "cancelled")).then(read("a", "pending")), job},
		"two claims at a time":                {begin().then(submit("a")).then(by("ann", history.Claim, 1)).then(by("bob", history.Claim, 2)), job},
		"a claim that is refused without one": {begin().then(submit("a")).then(by("ann", history.Claim, 0), ended(history.Refused)), job},
		"a token that is given twice": {begin().then(submit("a")).then(by("ann", history.Claim, 1)).then(by("ann", history.Release, 1)).
			then(by("bob", history.Claim, 1)), job},
		"work under a stale token": {begin().then(submit("a")).then(by("ann", history.Claim, 1)).then(by("ann", history.Release, 1)).
			then(by("bob", history.Claim, 2)).then(by("ann", history.Complete, 1)), job},
		"a cancel of a claimed job": {begin().then(submit("a")).then(by("ann", history.Claim, 1)).then(cancel("a")), job},
		"two jobs of one key": {begin().then(submit("a"), func(c *history.Call) { c.Key = "k" }).
			then(submit("b"), func(c *history.Call) { c.Key = "k" }), "acme key k"},
		"a key that is refused and taken": {begin().then(submit("a"), func(c *history.Call) { c.Key = "short" }).
			then(submit(""), short(3)), "acme key short"},
	} {
		if faults := c.h.Faults(never); !slices.Contains(names(faults), c.broke) {
			t.Errorf("%s: %q is taken; refused are %q", name, c.broke, names(faults))
		}
	}
}

// quiet is a test that notes how it failed.
type quiet struct {
	testing.TB
	said []string
}

func (*quiet) Helper()                     {}
func (q *quiet) Logf(string, ...any)       {}
func (q *quiet) Errorf(s string, _ ...any) { q.said = append(q.said, s) }

func TestAFaultFailsTheTestAndIsDrawn(t *testing.T) {
	t.Parallel()
	folder, q := t.TempDir(), &quiet{TB: t}
	begin().then(submit("a")).then(credits(10)).Check(q, folder, never)
	drawn, err := os.ReadFile(filepath.Join(folder, "ledger-of-acme.html"))
	must.NoError(t, err)
	if len(q.said) != 1 || !strings.Contains(string(drawn), "used 10") {
		t.Errorf("failed with %q; %d bytes were drawn", q.said, len(drawn))
	}
}
