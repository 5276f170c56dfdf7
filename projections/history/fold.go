package history

import (
	"context"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/projections/readmodel"
)

// Apply folds the batch in memory over the rows it builds on.
func (Projector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
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

// Fold is what the read model showed of a project when the log held these events
// of it and of its jobs, in the log's order, and no more, without a table: the
// same fold. NotFound without its creation among them.
func Fold(projectID string, events []domain.Recorded) (Project, error) {
	f := newFold()
	for _, r := range events {
		f.fold(r)
	}
	p := f.projects[projectID]
	if p == nil {
		return Project{}, domain.NotFound("project")
	}
	var trend []historyTestRow
	for _, test := range f.changed {
		if test.ProjectID == projectID {
			trend = append(trend, *test)
		}
	}
	slices.SortFunc(trend, func(a, b historyTestRow) int { return b.N - a.N })
	p.row.ProjectID, p.row.Name = projectID, p.state.Name
	return p.shown(trend[:min(len(trend), trendTests)]), nil
}

// historyFold is one batch on its way into the tables. What is written follows
// the order of the events, never that of a map.
type historyFold struct {
	jobs     map[string]string // the project of a job that has not ended
	opened   []string          // jobs that came in this batch
	ended    []string          // jobs that have no row any more
	tests    map[string]*historyTestRow
	changed  []*historyTestRow
	projects map[string]*foldedProject
	touched  []*foldedProject
	items    map[itemAt]*historyItemRow
	seen     []*historyItemRow
	deploys  []historyDeployRow
}

type foldedProject struct {
	row         historyProjectRow
	state       project.State // its name and its queue
	failures    []FailedItem
	regressions []string
	dirty       bool // to be written
}

type itemAt struct{ projectID, key string }

func idIn(stream string) string {
	_, id, _ := strings.Cut(stream, "-")
	return id
}

// fold applies one event. What belongs to no project, or to one that has no row
// because an operator skipped its project.created, is passed over.
func (f *historyFold) fold(r domain.Recorded) {
	id := idIn(r.Stream)
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
	}
}

// change folds an event of the project itself.
func (f *historyFold) change(id string, e domain.Event) {
	p := f.projects[id]
	if p == nil {
		if _, opens := e.(*project.Created); !opens {
			return
		}
		p = &foldedProject{row: historyProjectRow{ProjectID: id}, failures: []FailedItem{}, regressions: []string{}}
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

// open notes whose the job is. One that has ended already, because its
// submission was repeated, is noted all the same, whichever batch ended it.
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

// verified takes the fixes out of the queue that the completed job had along.
func (p *foldedProject) verified(jobID string) {
	p.state.Queue = slices.DeleteFunc(p.state.Queue, func(fix project.Fix) bool {
		return slices.Contains(fix.JobIDs, jobID)
	})
}

// giveBack takes a job that ended without a report off the fixes it had along:
// one that no job has any more waits again. The list is copied, it may still be
// the event's.
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
		JobID: jobID, AccountID: p.state.AccountID, ProjectID: p.row.ProjectID, N: p.row.Tests,
		OverallStatus: e.OverallStatus, PassCount: e.PassCount, FailCount: e.FailCount, TestedAt: readmodel.Moment(e.At), dirty: true,
	}
	f.tests[jobID] = test
	f.changed = append(f.changed, test)
	p.failures, p.regressions = []FailedItem{}, []string{}
	for place, i := range e.Items {
		if i.Status == job.ItemFail {
			p.failures = append(p.failures, failedItem(jobID, i.Item))
		}
		if f.see(test, place, i) {
			p.regressions = append(p.regressions, i.Description)
		}
	}
}

func failedItem(jobID string, i job.Item) FailedItem {
	return FailedItem{
		JobID: jobID, ID: i.ID, Key: i.Key, Description: i.Description,
		ExpectedOutcome: i.ExpectedOutcome, Severity: i.Severity,
	}
}

// see records what a test says about an item, and whether that is a regression:
// the test before had passed it. No two items of a report have one key.
func (f *historyFold) see(test *historyTestRow, place int, i job.ReportItem) (regressed bool) {
	at := itemAt{test.ProjectID, i.Key}
	row := f.items[at]
	if row == nil {
		row = &historyItemRow{AccountID: test.AccountID, ProjectID: test.ProjectID, Key: i.Key}
		f.items[at] = row
	}
	if !row.dirty {
		row.dirty = true
		f.seen = append(f.seen, row)
	}
	regressed = i.Status == job.ItemFail && row.SeenIn == test.N-1 && row.SeenAs == job.ItemPass
	row.SeenIn, row.SeenAs = test.N, i.Status
	testedAt := test.TestedAt
	switch i.Status {
	case job.ItemPass:
		row.Open, row.LastPassedAt = false, &testedAt
	case job.ItemFail:
		if !row.Open {
			row.Open, row.FirstFailedAt, row.FailedTests = true, &testedAt, 0
		}
		row.FailedTests++
		row.JobID, row.ItemID, row.Description = test.JobID, i.ID, i.Description
		row.ExpectedOutcome, row.Severity = i.ExpectedOutcome, i.Severity
		row.FailedIn, row.Place, row.FailedAt = test.N, place, &testedAt
	case job.ItemSkip, job.ItemPending: // no verdict
	}
	return regressed
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
	if !test.dirty {
		test.dirty = true
		f.changed = append(f.changed, test)
	}
}
