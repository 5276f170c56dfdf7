package history

import (
	"context"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/projections/readmodel"
)

// apply folds the batch in memory over the rows it builds on.
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	f := newFold()
	if err := f.load(ctx, tx, schema, batch); err != nil {
		return err
	}
	for _, r := range batch {
		f.fold(r)
	}
	return f.write(ctx, tx, schema)
}

func newFold() historyFold {
	return historyFold{
		jobs: map[string]string{}, tests: map[string]*historyTestRow{},
		projects: map[string]*foldedProject{}, items: map[itemAt]*historyItemRow{},
	}
}

// Past is the read model's state of a project at an earlier end of the log. It folds
// the events of the project and its jobs, in the log's order, without a table. It keeps
// the latest tests only.
type Past struct {
	id   string
	fold historyFold
}

// NewPast is a project before its first event.
func NewPast(projectID string) *Past { return &Past{projectID, newFold()} }

// Fold adds an event. A completed test may come without its items: see Verdicts.
func (p *Past) Fold(r domain.Recorded) {
	f := &p.fold
	f.fold(r)
	f.opened, f.ended, f.deploys, f.touched, f.seen = f.opened[:0], f.ended[:0], f.deploys[:0], f.touched[:0], f.seen[:0]
	f.weeks = f.weeks[:0]
	if of := f.projects[p.id]; of != nil {
		of.dirty = false
	}
	if len(f.changed) >= 2*trendTests {
		latest := p.latest(trendTests)
		for _, test := range f.changed {
			test.dirty = slices.Contains(latest, test)
		}
		f.changed = latest
	}
}

// latest gives the tests that completed last, the newest first.
func (p *Past) latest(most int) []*historyTestRow {
	tests := slices.SortedFunc(slices.Values(p.fold.changed), func(a, b *historyTestRow) int { return b.N - a.N })
	return tests[:min(len(tests), most)]
}

// Latest gives the jobs of the two tests that completed last, the newest first. The
// failures and the regressions follow from them.
func (p *Past) Latest() (jobIDs []string) {
	for _, test := range p.latest(2) {
		jobIDs = append(jobIDs, test.JobID)
	}
	return jobIDs
}

// Verdicts adds the verdicts of a test of Latest on its items. Call it for the older test
// first.
func (p *Past) Verdicts(jobID string, e *job.Completed) {
	if of := p.fold.projects[p.id]; of != nil {
		p.fold.judge(of, p.fold.tests[jobID], e.Items)
	}
}

// Unsettled gives the jobs that took prepared fixes and are not known to have ended. Only
// a job's own stream says that it never came.
func (p *Past) Unsettled() (jobIDs []string) {
	if of := p.fold.projects[p.id]; of != nil {
		for _, fix := range of.state.Queue {
			for _, id := range fix.JobIDs {
				if _, open := p.fold.jobs[id]; open {
					jobIDs = append(jobIDs, id)
				}
			}
		}
	}
	slices.Sort(jobIDs)
	return slices.Compact(jobIDs)
}

// Project gives the history; NotFound before the project's creation.
func (p *Past) Project() (Project, error) {
	of := p.fold.projects[p.id]
	if of == nil {
		return Project{}, domain.NotFound("project")
	}
	var trend []historyTestRow
	for _, test := range p.latest(trendTests) {
		trend = append(trend, *test)
	}
	of.row.ProjectID, of.row.Name = p.id, of.state.Name
	return of.shown(trend), nil
}

// historyFold is one batch on its way into the tables. The order of its writes follows
// the events, never a map.
type historyFold struct {
	jobs     map[string]string // the project of a job that has not ended
	opened   []string          // jobs that came in this batch
	ended    []string          // jobs whose rows are deleted
	tests    map[string]*historyTestRow
	changed  []*historyTestRow
	projects map[string]*foldedProject
	touched  []*foldedProject
	items    map[itemAt]*historyItemRow
	seen     []*historyItemRow
	erased   []*historyTestRow
	deploys  []historyDeployRow
	weeks    []historyWeekRow // each a change
}

type foldedProject struct {
	row   historyProjectRow
	state project.State // its name and its queue
	dirty bool          // to be written
}

type itemAt struct{ projectID, key string }

// fold applies one event. It skips an event without a project, and one of a project
// without a row, because an operator skipped its project.created.
func (f *historyFold) fold(r domain.Recorded) {
	id := r.StreamID()
	switch e := r.Event.(type) {
	case *project.Created, *project.SettingsChanged, *project.RegressionsPrepared:
		f.change(id, e)
	case *project.RegressionsAttached:
		f.change(id, e)
		for _, jobID := range e.JobIDs {
			f.open(jobID, id)
		}
	case *project.DeployReceived:
		if commit := e.Commit(); commit != "" {
			f.deploys = append(f.deploys, historyDeployRow{JobID: e.JobID, Commit: commit})
		}
	case *job.Created:
		if e.ProjectID != "" {
			f.open(id, e.ProjectID)
		}
	case *job.Completed:
		if p := f.end(id); p != nil {
			p.verified(id)
			f.test(p, id, e)
		}
	case *job.Cancelled, *job.Failed, *job.Voided:
		if p := f.end(id); p != nil {
			p.giveBack(id)
		}
	case *job.AIReportReady:
		f.score(id, e.HealthScore)
	case *job.DisputeDecided:
		f.rule(id, e)
	case *job.Erased:
		f.erase(id)
	}
}

// change folds an event of the project itself.
func (f *historyFold) change(id string, e domain.Event) {
	p := f.projects[id]
	if p == nil {
		if _, opens := e.(*project.Created); !opens {
			return
		}
		p = &foldedProject{row: historyProjectRow{ProjectID: id}}
		p.row.Failures, p.row.Regressions = []FailedItem{}, []string{}
		f.projects[id] = p
	}
	p.state = project.Evolve(p.state, e)
	f.touch(p)
}

func (f *historyFold) touch(p *foldedProject) {
	if !p.dirty {
		p.dirty = true
		f.touched = append(f.touched, p)
	}
}

// open notes the project of a job, also of one that has ended already because its
// submission was repeated, whichever batch ended it.
func (f *historyFold) open(jobID, projectID string) {
	f.ended = slices.DeleteFunc(f.ended, func(id string) bool { return id == jobID })
	f.jobs[jobID] = projectID
	f.opened = append(f.opened, jobID)
}

// end forgets a job and gives its project, if it has one.
func (f *historyFold) end(jobID string) *foldedProject {
	projectID, known := f.jobs[jobID]
	if !known {
		return nil
	}
	delete(f.jobs, jobID)
	f.ended = append(f.ended, jobID)
	p := f.projects[projectID]
	if p != nil {
		f.touch(p)
	}
	return p
}

// verified removes from the queue the fixes that the completed job had taken.
func (p *foldedProject) verified(jobID string) {
	p.state.Queue = slices.DeleteFunc(p.state.Queue, func(fix project.Fix) bool {
		return slices.Contains(fix.JobIDs, jobID)
	})
}

// giveBack removes a job that ended without a report from the fixes it had taken. A fix
// without any job waits again. The list is copied, because it may be the event's own.
func (p *foldedProject) giveBack(jobID string) {
	for i, fix := range p.state.Queue {
		p.state.Queue[i].JobIDs = slices.DeleteFunc(slices.Clone(fix.JobIDs), func(id string) bool { return id == jobID })
	}
}

// test adds a completed test to its project.
func (f *historyFold) test(p *foldedProject, jobID string, e *job.Completed) {
	p.row.Tests++
	switch e.OverallStatus {
	case job.OverallPass:
		p.row.Passed++
	case job.OverallFail:
		p.row.Failed++
	}
	test := &historyTestRow{
		TrendTest: TrendTest{
			JobID: jobID, OverallStatus: e.OverallStatus, PassCount: e.PassCount, FailCount: e.FailCount, TestedAt: readmodel.Moment(e.At),
		},
		AccountID: p.state.AccountID, ProjectID: p.row.ProjectID, N: p.row.Tests, dirty: true,
	}
	f.tests[jobID] = test
	f.changed = append(f.changed, test)
	passed := 0
	if e.OverallStatus == job.OverallPass {
		passed = 1
	}
	f.count(test, 1, passed)
	f.judge(p, test, e.Items)
}

// count adds to the week of a test.
func (f *historyFold) count(test *historyTestRow, tests, passed int) {
	f.weeks = append(f.weeks, historyWeekRow{test.AccountID, test.ProjectID, Monday(test.TestedAt).Format(time.DateOnly), tests, passed})
}

// Monday begins the week of a moment (UTC).
func Monday(at time.Time) time.Time {
	day := at.UTC().Truncate(24 * time.Hour)
	return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
}

// judge records the verdicts of the latest test of a project on its items.
func (f *historyFold) judge(p *foldedProject, test *historyTestRow, items []job.ReportItem) {
	p.row.Failures, p.row.Regressions = []FailedItem{}, []string{}
	for place, i := range items {
		if i.Status == job.ItemFail {
			p.row.Failures = append(p.row.Failures, failedItem(test.JobID, i.Item))
		}
		if f.see(test, place, i) {
			p.row.Regressions = append(p.row.Regressions, i.Description)
		}
	}
}

func failedItem(jobID string, i job.Item) FailedItem {
	return FailedItem{
		JobID: jobID, ID: i.ID, Key: i.Key, Description: i.Description,
		ExpectedOutcome: i.ExpectedOutcome, Severity: i.Severity,
	}
}

// erase removes a job's texts from its project; its verdicts stay. Its items are erased
// after the rest of the batch, since a later test may have written their rows anew.
func (f *historyFold) erase(jobID string) {
	test := f.tests[jobID]
	if test == nil { // no project has a test of this job
		return
	}
	f.erased = append(f.erased, test)
	for _, item := range f.items {
		if item.TextOf == jobID {
			item.Description, item.ExpectedOutcome = domain.Erased(item.Description), domain.Erased(item.ExpectedOutcome)
		}
	}
	p := f.projects[test.ProjectID]
	if p == nil {
		return
	}
	p.row.Failures = slices.Clone(p.row.Failures)
	for i := range p.row.Failures {
		if left := &p.row.Failures[i]; left.JobID == jobID {
			left.Description, left.ExpectedOutcome = domain.Erased(left.Description), domain.Erased(left.ExpectedOutcome)
		}
	}
	if test.N == p.row.Tests { // the regressions are the latest test's
		p.row.Regressions = slices.Clone(p.row.Regressions)
		for i := range p.row.Regressions {
			p.row.Regressions[i] = domain.Erased(p.row.Regressions[i])
		}
	}
	f.touch(p)
}

// score adds the analysis of a completed test.
func (f *historyFold) score(jobID string, score int) {
	test := f.tests[jobID]
	if test == nil {
		return
	}
	p := f.projects[test.ProjectID]
	if p == nil {
		return
	}
	test.HealthScore = &score
	p.row.HealthSum += int64(score)
	p.row.HealthTests++
	f.touch(p)
	f.rewrite(test)
}

func (f *historyFold) rewrite(test *historyTestRow) {
	if !test.dirty {
		test.dirty = true
		f.changed = append(f.changed, test)
	}
}
