package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/projects"
)

// tested is a project with a history.
type tested struct{ *world }

func setupTested(t *testing.T) tested {
	t.Helper()
	p := tested{setup(t)}
	p.Run(p.Sup)
	p.Log.Record(domain.ProjectStream("p1"), &project.Created{AccountID: "acc", Name: "shop", HookHash: "h1", At: modeltest.Noon})
	return p
}

func (p tested) submit(id string) {
	p.Log.RecordAs(domain.Metadata{Actor: "person:ada"}, domain.JobStream(id), modeltest.Created("acc", func(e *job.Created) { e.ProjectID = "p1" }))
}

// complete ends a job so many minutes past noon; see modeltest.Results.
func (p tested) complete(id string, minute int, results ...string) {
	p.Log.Record(domain.JobStream(id), modeltest.Claimed("ann"), modeltest.Results(id, minute, results...))
}

// test submits and completes.
func (p tested) test(id string, minute int, results ...string) {
	p.submit(id)
	p.complete(id, minute, results...)
}

func (p tested) score(id string, score int) {
	p.Log.Record(domain.JobStream(id), modeltest.Analysed(score))
}

func (p tested) history() Project {
	p.T.Helper()
	p.Reach(p.Sup)
	h, err := p.reads.Project(p.Ctx(), "acc", "p1")
	must.NoError(p.T, err)
	return h
}

func (p tested) open() []OpenFailure {
	p.T.Helper()
	p.Reach(p.Sup)
	failures, err := p.reads.OpenFailures(p.Ctx(), "acc", "p1", 20)
	must.NoError(p.T, err)
	return failures
}

// openKeys are the keys of the open failures, in order.
func (p tested) openKeys() string {
	p.T.Helper()
	var keys []string
	for _, f := range p.open() {
		keys = append(keys, f.Key)
	}
	return strings.Join(keys, " ")
}

func TestAProjectWithoutTestsHasAnEmptyHistory(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
	p.submit("running")
	modeltest.Same(t, p.history(), Project{
		ProjectID: "p1", ProjectName: "shop", LatestFailures: []FailedItem{}, Regressions: []string{},
	})
	if failures := p.open(); len(failures) > 0 {
		t.Errorf("open: %+v", failures)
	}
}

func TestThreeOfFourTestsPassed(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
	for i, status := range []string{"pass", "fail", "pass", "pass"} {
		p.test(fmt.Sprint("j", i), i, "x="+status)
	}
	h := p.history()
	if h.TotalTests != 4 || h.PassCount != 3 || h.FailCount != 1 || h.PassRate != 75 {
		t.Errorf("got %+v", h)
	}
	inList, err := projects.NewReads(p.DB).Get(p.Ctx(), "acc", "p1")
	if err != nil || inList.PassRate != 0.75 {
		t.Errorf("in the list: %v, %v", inList.PassRate, err)
	}
	p.test("j4", 5, "x=skip")
	if h := p.history(); h.TotalTests != 5 || h.PassCount != 3 || h.FailCount != 1 || h.PassRate != 60 {
		t.Errorf("an inconclusive test is neither passed nor failed: %+v", h)
	}
	p.Sound(p.Sup, "history")
}

func TestARegressionPassedInTheTestBeforeAndFailsInTheLatest(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
	p.test("j1", 1, "x=pass", "y=fail", "z=skip", "gone=pass")
	p.test("j2", 2, "x=fail", "y=fail", "z=fail", "new=fail")
	modeltest.Same(t, p.history().Regressions, []string{"X"})

	p.submit("running")
	modeltest.Same(t, p.history().Regressions, []string{"X"})

	p.complete("running", 3, "x=fail", "gone=fail")
	h := p.history()
	modeltest.Same(t, h.Regressions, []string{}) // x failed before, and the test before did not have gone
	modeltest.Same(t, h.LatestFailures, []FailedItem{
		{JobID: "running", ID: "running-0", Key: "x", Description: "X", ExpectedOutcome: "it works", Severity: job.Critical},
		{JobID: "running", ID: "running-1", Key: "gone", Description: "GONE", ExpectedOutcome: "it works", Severity: job.Critical},
	})
	last, err := p.reads.LastFailures(p.Ctx(), "acc", "p1")
	must.NoError(t, err)
	modeltest.Same(t, last, h.LatestFailures)
	p.Sound(p.Sup, "history")
}

func TestARewordedItemIsKnownByItsKey(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
	p.test("j1", 1, "pay=pass")
	p.submit("j2")
	p.Log.Record(domain.JobStream("j2"), modeltest.Claimed("ann"), &job.Completed{
		ReportID: "r2", OverallStatus: "fail", FailCount: 1, At: *modeltest.At(2),
		Items: []job.ReportItem{{Item: job.Item{ID: "i", Key: "pay", Description: "Cards are charged"}, Status: job.ItemFail}},
	})
	modeltest.Same(t, p.history().Regressions, []string{"Cards are charged"})
}

func TestTestsCountInTheOrderInWhichTheyCompleted(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
	p.submit("first")
	p.test("second", 1, "x=pass")
	p.complete("first", 2, "x=fail")
	h := p.history()
	modeltest.Same(t, h.Regressions, []string{"X"})
	if len(h.Trend) != 2 || h.Trend[0].JobID != "first" || h.Trend[1].JobID != "second" {
		t.Errorf("trend: %+v", h.Trend)
	}
}

func TestTheTrendShowsTheTenNewestTests(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
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
	modeltest.Same(t, h.Trend[0], TrendTest{JobID: "j11", OverallStatus: "fail", HealthScore: &score, PassCount: 2, FailCount: 1, TestedAt: *modeltest.At(11)})
	modeltest.Same(t, h.Trend[1], TrendTest{JobID: "j10", OverallStatus: "fail", PassCount: 2, FailCount: 1, TestedAt: *modeltest.At(10)})
	if h.AverageHealthScore != 70 || h.ScoredTests != 3 {
		t.Errorf("average: %v of %d", h.AverageHealthScore, h.ScoredTests)
	}
	p.Sound(p.Sup, "history")
}

func TestAnOpenFailureKnowsItsLineage(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
	p.test("j1", 1, "x=fail", "y=pass")
	p.test("j2", 2, "x=pass", "y=pass")
	p.test("j3", 3, "x=fail", "y=pass")
	p.test("j4", 4, "y=fail", "x=fail", "w=fail")
	p.test("j5", 5, "x=skip", "w=pass") // skipped is not tested, and y was not on the list
	modeltest.Same(t, p.open(), []OpenFailure{
		{
			FailedItem: FailedItem{JobID: "j4", ID: "j4-0", Key: "y", Description: "Y", ExpectedOutcome: "it works", Severity: job.Critical},
			FailedAt:   *modeltest.At(4), FirstFailedAt: *modeltest.At(4), FailedTests: 1, LastPassedAt: modeltest.At(3),
		}, {
			FailedItem: FailedItem{JobID: "j4", ID: "j4-1", Key: "x", Description: "X", ExpectedOutcome: "it works", Severity: job.Critical},
			FailedAt:   *modeltest.At(4), FirstFailedAt: *modeltest.At(3), FailedTests: 2, LastPassedAt: modeltest.At(2),
		},
	})
	p.test("j6", 6, "new=fail", "y=fail", "x=pass")
	if got := p.openKeys(); got != "new y" {
		t.Errorf("open: %s", got)
	}
	failures, err := p.reads.OpenFailures(p.Ctx(), "acc", "p1", 1)
	if err != nil || len(failures) != 1 || failures[0].Key != "new" || failures[0].LastPassedAt != nil {
		t.Errorf("the newest: %+v, %v", failures, err)
	}
	for limit, want := range map[int]Standing{
		20: {ProjectID: "p1", TestedAt: modeltest.At(6), Author: "person:ada", Failures: 2, Critical: 2, Fresh: 1, Gravest: "NEW"},
		1:  {ProjectID: "p1", TestedAt: modeltest.At(6), Author: "person:ada", Failures: 1, Critical: 1, Fresh: 1, Gravest: "NEW"},
	} {
		standings, err := p.reads.Standings(p.Ctx(), "acc", []string{"p2", "p1", "none"}, *modeltest.At(5), limit)
		must.NoError(t, err)
		modeltest.Same(t, standings, []Standing{want, {ProjectID: "p2"}, {ProjectID: "none"}})
	}
	if standings, err := p.reads.Standings(p.Ctx(), "other", []string{"p1"}, *modeltest.At(0), 20); err != nil || len(standings) != 1 || standings[0] != (Standing{ProjectID: "p1"}) {
		t.Errorf("another account's project fails: %+v, %v", standings, err)
	}
	p.test("j7", 24*60, "new=pass")
	p.openKeys() // waits
	weeks, err := p.reads.Weeks(p.Ctx(), "acc", []string{"p1", "none"}, Monday(*modeltest.At(3)).AddDate(0, 0, -7))
	must.NoError(t, err)
	modeltest.Same(t, weeks, []Week{{ProjectID: "p1", N: 1, Tests: 6, Passed: 2}, {ProjectID: "p1", N: 2, Tests: 1, Passed: 1}})
	if weeks, err := p.reads.Weeks(p.Ctx(), "other", []string{"p1"}, *modeltest.At(0)); err != nil || len(weeks) > 0 {
		t.Errorf("another account's weeks: %+v, %v", weeks, err)
	}
	p.Sound(p.Sup, "history")
}

func TestAWeekBeginsOnItsMonday(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		"2026-11-23T00:00:00Z": "2026-11-23", "2026-11-29T23:59:59Z": "2026-11-23", "2026-11-30T00:30:00+01:00": "2026-11-23", "2027-01-01T12:00:00Z": "2026-12-28",
	} {
		moment, err := time.Parse(time.RFC3339, at)
		must.NoError(t, err)
		if got := Monday(moment).Format(time.DateOnly); got != want {
			t.Errorf("%s is in the week of %s, want %s", at, got, want)
		}
	}
}

func TestPreparedFixesWaitUntilATestHasVerifiedThem(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
	stream := domain.ProjectStream("p1")
	one := PreparedBatch{BugIDs: []string{"bug-pay"}, Descriptions: []string{"fixed pay", "fixed mail"}, PreparedAt: *modeltest.At(7)}
	two := PreparedBatch{BugIDs: []string{"bug-cart"}, Descriptions: []string{"fixed cart"}, PreparedAt: *modeltest.At(7)}
	waits := func(why string, want ...PreparedBatch) {
		t.Helper()
		t.Run(why, func(t *testing.T) { modeltest.Same(t, p.history().Prepared, want) })
	}
	attach := func(items []string, forgotten []string, jobs ...string) {
		p.Log.Record(stream, &project.RegressionsAttached{JobIDs: jobs, Items: items, Forgotten: forgotten, At: modeltest.Noon})
	}
	p.Log.Record(stream, modeltest.Prepared("a", "pay", "mail"), modeltest.Prepared("b", "cart"))
	waits("a batch for each call", one, two)

	attach([]string{"a0", "a1", "b0"}, nil, "j1", "j2")
	waits("nothing while jobs have them along")
	p.submit("j1")
	p.submit("j2")
	p.Log.Record(domain.JobStream("j1"), &job.Cancelled{Reason: "client", At: modeltest.Noon})
	waits("nothing while one job has them along")
	p.Log.Record(domain.JobStream("j2"), &job.Failed{Reason: "operator", At: modeltest.Noon})
	waits("again once all have ended without a report", one, two)

	attach([]string{"a0", "a1"}, nil, "never-came")
	waits("what was not taken along", two)
	p.Log.Record(domain.JobStream("never-came"), &job.Voided{AccountID: "acc", At: modeltest.Noon})
	waits("again once the submission was given up", one, two)

	p.Log.Record(stream, modeltest.Prepared("c", "mail"))
	mail := PreparedBatch{BugIDs: []string{"bug-mail"}, Descriptions: []string{"fixed mail"}, PreparedAt: *modeltest.At(7)}
	pay := PreparedBatch{BugIDs: []string{"bug-pay"}, Descriptions: []string{"fixed pay"}, PreparedAt: *modeltest.At(7)}
	waits("a key only once", pay, two, mail)

	attach([]string{"a0"}, []string{"b0"}, "j3", "j4")
	waits("what is not forgotten", mail)
	p.submit("j3")
	p.submit("j4")
	p.complete("j3", 1, "pay=pass")
	p.Log.Record(domain.JobStream("j4"), &job.Cancelled{Reason: "client", At: modeltest.Noon})
	waits("what no job has reported on", mail)
	p.Sound(p.Sup, "history")
}

func TestOnlyTestsOfTheProjectAreItsHistory(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
	p.Log.Record(domain.JobStream("alone"), modeltest.Created("acc"), modeltest.Claimed("ann"), modeltest.Completed("fail"), modeltest.Analysed(10))
	p.Log.Record(domain.JobStream("strange"), modeltest.Created("acc", func(e *job.Created) { e.ProjectID = "skipped" }), modeltest.Claimed("ann"), modeltest.Completed("fail"), modeltest.Analysed(10))
	p.Log.Record(domain.ProjectStream("skipped"), &project.SettingsChanged{Name: "n", At: modeltest.Noon})
	if h := p.history(); h.TotalTests != 0 || h.AverageHealthScore != 0 || h.ScoredTests != 0 {
		t.Errorf("got %+v", h)
	}
	p.test("j1", 1, "x=fail")
	p.Reach(p.Sup)
	for _, foreign := range [][2]string{{"other", "p1"}, {"acc", "skipped"}} {
		if _, err := p.reads.Project(p.Ctx(), foreign[0], foreign[1]); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("history for %v: %v", foreign, err)
		}
		if _, err := p.reads.OpenFailures(p.Ctx(), foreign[0], foreign[1], 20); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("open failures for %v: %v", foreign, err)
		}
		if _, err := p.reads.LastFailures(p.Ctx(), foreign[0], foreign[1]); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("last failures for %v: %v", foreign, err)
		}
	}
}

func TestTheMatrixSaysWhenAnItemFirstFailedAndInWhichCommit(t *testing.T) {
	t.Parallel()
	p := setupTested(t)
	p.Log.Record(domain.ProjectStream("p1"),
		&project.DeployReceived{Keys: []string{"commit:aaa111"}, JobID: "j2", At: modeltest.Noon},
		&project.DeployReceived{Keys: []string{"key:k", "commit:bbb222"}, JobID: "j3", At: modeltest.Noon},
		&project.DeployReceived{Keys: []string{"commit:later"}, JobID: "j3", At: modeltest.Noon}, // joined the same test
		&project.DeployReceived{Keys: []string{"key:only"}, JobID: "j4", At: modeltest.Noon})
	p.test("j1", 1, "a=pass", "b=fail", "c=pass")
	p.test("j2", 2, "a=fail", "b=pass", "c=pass")
	p.test("j3", 3, "a=skip", "b=fail", "c=pass")
	p.test("j4", 4, "a=fail", "c=pass", "d=pass")
	p.Reach(p.Sup)
	m, err := p.reads.Matrix(p.Ctx(), "acc", "p1", 20)
	must.NoError(t, err)
	var columns, rows []string
	for _, test := range m.Tests {
		columns = append(columns, test.JobID+":"+test.Commit)
	}
	for _, r := range m.Rows {
		rows = append(rows, fmt.Sprintf("%s %v since %d, open %v", r.Key, r.Verdicts, r.FailedFirst, r.Open))
	}
	want := []string{"b [fail pass fail ] since 2, open true", "a [pass fail skip fail] since 1, open true"}
	if got := strings.Join(columns, " "); got != "j1: j2:aaa111 j3:bbb222 j4:" || strings.Join(rows, "\n") != strings.Join(want, "\n") || m.Passed != 2 {
		t.Errorf("tests %s\n%s\n%d passed", got, strings.Join(rows, "\n"), m.Passed)
	}
	if m, err = p.reads.Matrix(p.Ctx(), "acc", "p1", 2); err != nil || len(m.Tests) != 2 || m.Tests[0].JobID != "j3" {
		t.Errorf("the last two: %+v, %v", m.Tests, err)
	}
	if m, err = p.reads.Matrix(p.Ctx(), "other", "p1", 20); err != nil || len(m.Tests)+len(m.Rows) > 0 {
		t.Errorf("another account's: %+v, %v", m, err)
	}
	p.Sound(p.Sup, "history")
}
