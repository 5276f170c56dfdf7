package projections

import (
	"fmt"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// prepared queues a fix for each key; its ids are the batch's with a number.
func prepared(batchID string, keys ...string) *project.RegressionsPrepared {
	e := &project.RegressionsPrepared{BatchID: batchID, At: *at(7)}
	for i, key := range keys {
		p := project.Prepared{ID: fmt.Sprint(batchID, i), Key: key, Description: "fixed " + key, Severity: "major"}
		if i == 0 {
			p.BugID = "bug-" + key
		}
		e.Items = append(e.Items, p)
	}
	return e
}

// past is a project with a history.
type past struct{ *world }

func setupPast(t *testing.T) past {
	t.Helper()
	p := past{setup(t)}
	p.run(p.sup)
	p.log.append(domain.ProjectStream("p1"), &project.Created{AccountID: "acc", Name: "shop", HookHash: "h1", At: noon})
	return p
}

func (p past) submit(id string) {
	p.log.append(domain.JobStream(id), created("acc", func(e *job.Created) { e.ProjectID = "p1" }))
}

// complete ends a job so many minutes past noon. Each result is "key=status",
// its description the key in capitals.
func (p past) complete(id string, minute int, results ...string) {
	e := &job.CompletedWith{ReportID: "r-" + id, At: *at(minute)}
	for i, r := range results {
		key, status, _ := strings.Cut(r, "=")
		e.Items = append(e.Items, job.ReportItem{
			Item: job.Item{
				ID: fmt.Sprint(id, "-", i), Key: key, Description: strings.ToUpper(key),
				ExpectedOutcome: "it works", Severity: job.Critical,
			},
			Status: job.ItemStatus(status),
		})
	}
	e.PassCount, e.FailCount, e.SkipCount = job.Counts(e.Items)
	e.OverallStatus = job.OverallStatus(e.Items)
	p.log.append(domain.JobStream(id), claimed("ann"), e)
}

// test submits and completes.
func (p past) test(id string, minute int, results ...string) {
	p.submit(id)
	p.complete(id, minute, results...)
}

func (p past) score(id string, score int) { p.log.append(domain.JobStream(id), analysed(score)) }

func (p past) history() ProjectHistory {
	p.t.Helper()
	p.reach(p.sup)
	h, err := p.reads.History.Project(p.ctx(), "acc", "p1")
	if err != nil {
		p.t.Fatal(err)
	}
	return h
}

func (p past) open() []OpenFailure {
	p.t.Helper()
	p.reach(p.sup)
	failures, err := p.reads.History.OpenFailures(p.ctx(), "acc", "p1", 20)
	if err != nil {
		p.t.Fatal(err)
	}
	return failures
}

// openKeys are the keys of the open failures, in order.
func (p past) openKeys() string {
	p.t.Helper()
	var keys []string
	for _, f := range p.open() {
		keys = append(keys, f.Key)
	}
	return strings.Join(keys, " ")
}

func TestAProjectWithoutTestsHasAnEmptyHistory(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	p.submit("running")
	same(t, p.history(), ProjectHistory{
		ProjectID: "p1", ProjectName: "shop", LatestFailures: []FailedItem{}, Regressions: []string{},
	})
	if failures := p.open(); len(failures) > 0 {
		t.Errorf("open: %+v", failures)
	}
}

func TestThreeOfFourTestsPassed(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	for i, status := range []string{"pass", "fail", "pass", "pass"} {
		p.test(fmt.Sprint("j", i), i, "x="+status)
	}
	h := p.history()
	if h.TotalTests != 4 || h.PassCount != 3 || h.FailCount != 1 || h.PassRate != 75 {
		t.Errorf("got %+v", h)
	}
	inList, err := p.reads.Projects.Get(p.ctx(), "acc", "p1")
	if err != nil || inList.PassRate != 0.75 {
		t.Errorf("in the list: %v, %v", inList.PassRate, err)
	}
	p.test("j4", 5, "x=skip")
	if h := p.history(); h.TotalTests != 5 || h.PassCount != 3 || h.FailCount != 1 || h.PassRate != 60 {
		t.Errorf("an inconclusive test is neither passed nor failed: %+v", h)
	}
	p.sound(p.sup, "history")
}

func TestARegressionPassedInTheTestBeforeAndFailsInTheLatest(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	p.test("j1", 1, "x=pass", "y=fail", "z=skip", "gone=pass")
	p.test("j2", 2, "x=fail", "y=fail", "z=fail", "new=fail")
	same(t, p.history().Regressions, []string{"X"})

	p.submit("running")
	same(t, p.history().Regressions, []string{"X"})

	p.complete("running", 3, "x=fail", "gone=fail")
	h := p.history()
	same(t, h.Regressions, []string{}) // x failed before, and the test before did not have gone
	same(t, h.LatestFailures, []FailedItem{
		{JobID: "running", ID: "running-0", Key: "x", Description: "X", ExpectedOutcome: "it works", Severity: job.Critical},
		{JobID: "running", ID: "running-1", Key: "gone", Description: "GONE", ExpectedOutcome: "it works", Severity: job.Critical},
	})
	last, err := p.reads.History.LastFailures(p.ctx(), "acc", "p1")
	if err != nil {
		t.Fatal(err)
	}
	same(t, last, h.LatestFailures)
	p.sound(p.sup, "history")
}

func TestARewordedItemIsKnownByItsKey(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	p.test("j1", 1, "pay=pass")
	p.submit("j2")
	p.log.append(domain.JobStream("j2"), claimed("ann"), &job.CompletedWith{
		ReportID: "r2", OverallStatus: "fail", FailCount: 1, At: *at(2),
		Items: []job.ReportItem{{Item: job.Item{ID: "i", Key: "pay", Description: "Cards are charged"}, Status: job.ItemFail}},
	})
	same(t, p.history().Regressions, []string{"Cards are charged"})
}

func TestTestsCountInTheOrderInWhichTheyCompleted(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	p.submit("first")
	p.test("second", 1, "x=pass")
	p.complete("first", 2, "x=fail")
	h := p.history()
	same(t, h.Regressions, []string{"X"})
	if len(h.Trend) != 2 || h.Trend[0].JobID != "first" || h.Trend[1].JobID != "second" {
		t.Errorf("trend: %+v", h.Trend)
	}
}

func TestTheTrendShowsTheTenNewestTests(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	for i := range 12 {
		p.test(fmt.Sprint("j", i), i, "x=fail", "y=pass", "z=pass")
	}
	p.score("j11", 40)
	p.score("j3", 80)
	p.score("j0", 90) // not in the trend any more, but in the average
	h := p.history()
	if len(h.Trend) != 10 || h.Trend[9].JobID != "j2" {
		t.Fatalf("trend: %+v", h.Trend)
	}
	score := 40
	same(t, h.Trend[0], TrendTest{JobID: "j11", OverallStatus: "fail", HealthScore: &score, PassCount: 2, FailCount: 1, TestedAt: *at(11)})
	same(t, h.Trend[1], TrendTest{JobID: "j10", OverallStatus: "fail", PassCount: 2, FailCount: 1, TestedAt: *at(10)})
	if h.AverageHealthScore != 70 || h.ScoredTests != 3 {
		t.Errorf("average: %v of %d", h.AverageHealthScore, h.ScoredTests)
	}
	p.sound(p.sup, "history")
}

func TestAnOpenFailureKnowsItsLineage(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	p.test("j1", 1, "x=fail", "y=pass")
	p.test("j2", 2, "x=pass", "y=pass")
	p.test("j3", 3, "x=fail", "y=pass")
	p.test("j4", 4, "y=fail", "x=fail", "w=fail")
	p.test("j5", 5, "x=skip", "w=pass") // skipped is not tested, and y was not on the list
	same(t, p.open(), []OpenFailure{
		{
			FailedItem: FailedItem{JobID: "j4", ID: "j4-0", Key: "y", Description: "Y", ExpectedOutcome: "it works", Severity: job.Critical},
			FailedAt:   *at(4), FirstFailedAt: *at(4), FailedTests: 1, LastPassedAt: at(3),
		}, {
			FailedItem: FailedItem{JobID: "j4", ID: "j4-1", Key: "x", Description: "X", ExpectedOutcome: "it works", Severity: job.Critical},
			FailedAt:   *at(4), FirstFailedAt: *at(3), FailedTests: 2, LastPassedAt: at(2),
		},
	})
	p.test("j6", 6, "new=fail", "y=fail", "x=pass")
	if got := p.openKeys(); got != "new y" {
		t.Errorf("open: %s", got)
	}
	failures, err := p.reads.History.OpenFailures(p.ctx(), "acc", "p1", 1)
	if err != nil || len(failures) != 1 || failures[0].Key != "new" || failures[0].LastPassedAt != nil {
		t.Errorf("the newest: %+v, %v", failures, err)
	}
	p.sound(p.sup, "history")
}

func TestPreparedFixesWaitUntilATestHasVerifiedThem(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	stream := domain.ProjectStream("p1")
	one := PreparedBatch{BugIDs: []string{"bug-pay"}, Descriptions: []string{"fixed pay", "fixed mail"}, PreparedAt: *at(7)}
	two := PreparedBatch{BugIDs: []string{"bug-cart"}, Descriptions: []string{"fixed cart"}, PreparedAt: *at(7)}
	waits := func(why string, want ...PreparedBatch) {
		t.Helper()
		t.Run(why, func(t *testing.T) { same(t, p.history().Prepared, want) })
	}
	attach := func(items []string, forgotten []string, jobs ...string) {
		p.log.append(stream, &project.RegressionsAttached{JobIDs: jobs, Items: items, Forgotten: forgotten, At: noon})
	}
	p.log.append(stream, prepared("a", "pay", "mail"), prepared("b", "cart"))
	waits("a batch for each call", one, two)

	attach([]string{"a0", "a1", "b0"}, nil, "j1", "j2")
	waits("nothing while jobs have them along")
	p.submit("j1")
	p.submit("j2")
	p.log.append(domain.JobStream("j1"), &job.CancelledBy{Reason: "client", At: noon})
	waits("nothing while one job has them along")
	p.log.append(domain.JobStream("j2"), &job.FailedBy{Reason: "operator", At: noon})
	waits("again once all have ended without a report", one, two)

	attach([]string{"a0", "a1"}, nil, "never-came")
	waits("what was not taken along", two)
	p.log.append(domain.JobStream("never-came"), &job.VoidedOrphan{AccountID: "acc", At: noon})
	waits("again once the submission was given up", one, two)

	p.log.append(stream, prepared("c", "mail"))
	mail := PreparedBatch{BugIDs: []string{"bug-mail"}, Descriptions: []string{"fixed mail"}, PreparedAt: *at(7)}
	pay := PreparedBatch{BugIDs: []string{"bug-pay"}, Descriptions: []string{"fixed pay"}, PreparedAt: *at(7)}
	waits("a key only once", pay, two, mail)

	attach([]string{"a0"}, []string{"b0"}, "j3", "j4")
	waits("what is not forgotten", mail)
	p.submit("j3")
	p.submit("j4")
	p.complete("j3", 1, "pay=pass")
	p.log.append(domain.JobStream("j4"), &job.CancelledBy{Reason: "client", At: noon})
	waits("what no job has reported on", mail)
	p.sound(p.sup, "history")
}

func TestOnlyTestsOfTheProjectAreItsHistory(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	p.log.append(domain.JobStream("alone"), created("acc"), claimed("ann"), completed("fail"), analysed(10))
	p.log.append(domain.JobStream("strange"), created("acc", func(e *job.Created) { e.ProjectID = "skipped" }), claimed("ann"), completed("fail"), analysed(10))
	p.log.append(domain.ProjectStream("skipped"), &project.SettingsChanged{Name: "n", At: noon})
	if h := p.history(); h.TotalTests != 0 || h.AverageHealthScore != 0 || h.ScoredTests != 0 {
		t.Errorf("got %+v", h)
	}
	p.test("j1", 1, "x=fail")
	p.reach(p.sup)
	for _, foreign := range [][2]string{{"other", "p1"}, {"acc", "skipped"}} {
		if _, err := p.reads.History.Project(p.ctx(), foreign[0], foreign[1]); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("history for %v: %v", foreign, err)
		}
		if _, err := p.reads.History.OpenFailures(p.ctx(), foreign[0], foreign[1], 20); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("open failures for %v: %v", foreign, err)
		}
		if _, err := p.reads.History.LastFailures(p.ctx(), foreign[0], foreign[1]); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("last failures for %v: %v", foreign, err)
		}
	}
}

func TestANominationIsTheNewestProjectOfTheHost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	open := func(id, accountID, url string, minute int) {
		w.log.append(domain.ProjectStream(id), &project.Created{AccountID: accountID, Name: id, DefaultURL: &url, HookHash: id, At: *at(minute)})
	}
	open("older", "acc", "https://www.App.example/old", 1)
	open("newer", "acc", "https://app.example:443/", 2)
	open("staging", "acc", "https://app.example:8443/", 3)
	open("theirs", "other", "https://app.example/", 4)
	w.log.append(domain.ProjectStream("bare"), &project.Created{AccountID: "acc", Name: "bare", HookHash: "bare", At: *at(5)})
	w.reach(w.sup)
	n := Nominations{w.reads}
	find := func(host string) string {
		t.Helper()
		w.reach(w.sup)
		id, found, err := n.ProjectForHost(w.ctx(), "acc", host)
		if err != nil || found != (id != "") {
			t.Fatalf("%q, %v, %v", id, found, err)
		}
		return id
	}
	for host, want := range map[string]string{"app.example": "newer", "app.example:8443": "staging", "other.example": "", "": ""} {
		if got := find(host); got != want {
			t.Errorf("%q leads to %q, want %q", host, got, want)
		}
	}
	w.log.append(domain.ProjectStream("newer"), &project.SettingsChanged{Name: "newer", At: *at(6)}) // without a URL
	if got := find("app.example"); got != "older" {
		t.Errorf("a cleared URL still leads to %q", got)
	}
	w.sound(w.sup, "projects")
}

func TestNominationsKnowWhatWasTestedAndWhatFailed(t *testing.T) {
	t.Parallel()
	p := setupPast(t)
	n := Nominations{p.reads}
	tested := func(accountID string) bool {
		t.Helper()
		p.reach(p.sup)
		yes, err := n.Tested(p.ctx(), accountID, "p1")
		if err != nil {
			t.Fatal(err)
		}
		return yes
	}
	if tested("acc") {
		t.Error("tested before its first job")
	}
	p.submit("j1")
	if !tested("acc") || tested("other") {
		t.Error("a job makes its project a tested one, for its account")
	}
	p.complete("j1", 1, "x=fail", "y=pass", "z=fail")
	p.reach(p.sup)
	failures, err := n.OpenFailures(p.ctx(), "acc", "p1", 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, failures, []command.Regression{{
		Key: "x", Description: "X", ExpectedOutcome: "it works", Severity: job.Critical, FailedAt: *at(1),
	}})
	if failures, err := n.OpenFailures(p.ctx(), "other", "p1", 9); err != nil || len(failures) > 0 {
		t.Errorf("another account nominates %+v, %v", failures, err)
	}
}

func TestADeployHookLeadsToItsProject(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append(domain.AccountStream("acc"), &account.Created{Name: "a", Sandbox: true})
	w.log.append(domain.ProjectStream("p1"), &project.Created{AccountID: "acc", Name: "shop", HookHash: "h1", At: noon})
	find := func(hash string) (HookTarget, bool) {
		t.Helper()
		w.reach(w.sup)
		target, found, err := w.reads.Projects.ByHook(w.ctx(), hash)
		if err != nil {
			t.Fatal(err)
		}
		return target, found
	}
	if target, found := find("h1"); !found || target != (HookTarget{AccountID: "acc", ProjectID: "p1", Sandbox: true}) {
		t.Errorf("got %+v, %v", target, found)
	}
	w.log.append(domain.AccountStream("acc"), &account.Suspended{})
	if target, _ := find("h1"); !target.Suspended {
		t.Error("the suspension is not seen")
	}
	if target, found := find("h2"); found {
		t.Errorf("an unknown hash leads to %+v", target)
	}
}
