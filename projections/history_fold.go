package projections

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// Apply folds the batch in memory over the rows it builds on.
func (historyProjector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	f := historyFold{
		jobs: map[string]string{}, tests: map[string]*historyTestRow{},
		projects: map[string]*pastProject{}, items: map[itemAt]*historyItemRow{},
	}
	if err := f.load(ctx, tx, schema, batch); err != nil {
		return err
	}
	for _, r := range batch {
		f.fold(r)
	}
	return f.write(ctx, tx, schema)
}

// historyFold is one batch on its way into the tables. What is written follows
// the order of the events, never that of a map.
type historyFold struct {
	jobs     map[string]string // the project of a job that has not ended
	opened   []string          // jobs that came in this batch
	ended    []string          // jobs that have no row any more
	tests    map[string]*historyTestRow
	changed  []*historyTestRow
	projects map[string]*pastProject
	touched  []*pastProject
	items    map[itemAt]*historyItemRow
	seen     []*historyItemRow
}

type pastProject struct {
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

// load fetches the rows that the batch builds on: jobs lead to projects, and
// with them to items.
func (f *historyFold) load(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var ended, analysed, projects []string
	created := map[string]string{}
	for _, r := range batch {
		id := idIn(r.Stream)
		switch e := r.Event.(type) {
		case *job.Created:
			created[id] = e.ProjectID
		case *job.AIReportReady:
			analysed = append(analysed, id)
		case *job.CompletedWith, *job.CancelledBy, *job.FailedBy, *job.VoidedOrphan:
			ended = append(ended, id)
		default:
			projects = append(projects, id)
		}
	}
	var live []historyJobRow
	if err := selectAny(ctx, tx, schema, loadHistoryJobsSQL, &live, ended); err != nil {
		return fmt.Errorf("load jobs: %w", err)
	}
	for _, row := range live {
		f.jobs[row.JobID] = row.ProjectID
		projects = append(projects, row.ProjectID)
	}
	for _, id := range ended {
		if created[id] != "" {
			projects = append(projects, created[id])
		}
	}
	var tests []historyTestRow
	if err := selectAny(ctx, tx, schema, loadHistoryTestsSQL, &tests, analysed); err != nil {
		return fmt.Errorf("load tests: %w", err)
	}
	for _, row := range tests {
		f.tests[row.JobID] = &row
		projects = append(projects, row.ProjectID)
	}
	slices.Sort(projects)
	var rows []historyProjectRow
	if err := selectAny(ctx, tx, schema, loadHistoryProjectsSQL, &rows, slices.Compact(projects)); err != nil {
		return fmt.Errorf("load projects: %w", err)
	}
	for _, row := range rows {
		p, err := row.past()
		if err != nil {
			return err
		}
		f.projects[row.ProjectID] = p
	}
	return f.loadItems(ctx, tx, schema, batch, created)
}

// loadItems fetches the items of the tests that the batch completes.
func (f *historyFold) loadItems(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded, created map[string]string) error {
	var accounts, projects, keys []string
	wanted := map[itemAt]bool{}
	for _, r := range batch {
		e, completes := r.Event.(*job.CompletedWith)
		if !completes {
			continue
		}
		projectID := f.jobs[idIn(r.Stream)]
		if projectID == "" {
			projectID = created[idIn(r.Stream)]
		}
		p := f.projects[projectID]
		if p == nil {
			continue // it begins in this batch, or there is none
		}
		for _, i := range e.Items {
			if at := (itemAt{projectID, i.Key}); !wanted[at] {
				wanted[at] = true
				accounts, projects, keys = append(accounts, p.state.AccountID), append(projects, projectID), append(keys, i.Key)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	var rows []historyItemRow
	err := tx.SelectContext(ctx, &rows, in(schema, loadHistoryItemsSQL), pq.Array(accounts), pq.Array(projects), pq.Array(keys))
	if err != nil {
		return fmt.Errorf("load items: %w", err)
	}
	for _, row := range rows {
		utc(row.FailedAt, row.FirstFailedAt, row.LastPassedAt)
		f.items[itemAt{row.ProjectID, row.Key}] = &row
	}
	return nil
}

// selectAny runs a query whose parameter is a list of ids, unless it is empty.
func selectAny[Row any](ctx context.Context, tx *sqlx.Tx, schema, query string, rows *[]Row, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return tx.SelectContext(ctx, rows, in(schema, query), pq.Array(ids))
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
	case *job.Created:
		if e.ProjectID != "" {
			f.open(id, e.ProjectID)
		}
	case *job.CompletedWith:
		if p := f.end(id); p != nil {
			p.verified(id)
			f.test(p, id, e)
		}
	case *job.CancelledBy, *job.FailedBy, *job.VoidedOrphan:
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
		p = &pastProject{row: historyProjectRow{ProjectID: id}, failures: []FailedItem{}, regressions: []string{}}
		f.projects[id] = p
	}
	p.state = project.Evolve(p.state, e)
	f.touch(p)
}

func (f *historyFold) touch(p *pastProject) {
	if !p.dirty {
		p.dirty = true
		f.touched = append(f.touched, p)
	}
}

// open notes whose the job is.
func (f *historyFold) open(jobID, projectID string) {
	f.jobs[jobID] = projectID
	f.opened = append(f.opened, jobID)
}

// end forgets a job and gives its project, if it has one.
func (f *historyFold) end(jobID string) *pastProject {
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
func (p *pastProject) verified(jobID string) {
	p.state.Queue = slices.DeleteFunc(p.state.Queue, func(fix project.Fix) bool {
		return slices.Contains(fix.JobIDs, jobID)
	})
}

// giveBack takes a job that ended without a report off the fixes it had along:
// one that no job has any more waits again. The list is copied, it may still be
// the event's.
func (p *pastProject) giveBack(jobID string) {
	for i, fix := range p.state.Queue {
		p.state.Queue[i].JobIDs = slices.DeleteFunc(slices.Clone(fix.JobIDs), func(id string) bool { return id == jobID })
	}
}

// test adds a completed test to its project.
func (f *historyFold) test(p *pastProject, jobID string, e *job.CompletedWith) {
	p.row.Tests++
	switch e.OverallStatus {
	case job.OverallPass:
		p.row.Passed++
	case job.OverallFail:
		p.row.Failed++
	}
	test := &historyTestRow{
		JobID: jobID, AccountID: p.state.AccountID, ProjectID: p.row.ProjectID, N: p.row.Tests,
		OverallStatus: e.OverallStatus, PassCount: e.PassCount, FailCount: e.FailCount, TestedAt: moment(e.At), dirty: true,
	}
	f.tests[jobID] = test
	f.changed = append(f.changed, test)
	p.failures, p.regressions = []FailedItem{}, []string{}
	for place, i := range e.Items {
		if i.Status == job.ItemFail {
			p.failures = append(p.failures, failedItem(jobID, i.Item))
		}
		if status, first := verdictOn(e.Items, i.Key); first == place {
			if f.see(p, test, place, i.Item, status) {
				p.regressions = append(p.regressions, i.Description)
			}
		}
	}
}

// verdictOn sums up the items of a key, of which a list has one and findings
// may add more: fail if any failed, else pass if any passed. at is the first
// item with that verdict.
func verdictOn(items []job.ReportItem, key string) (status job.ItemStatus, at int) {
	for _, status := range []job.ItemStatus{job.ItemFail, job.ItemPass, job.ItemSkip} {
		i := slices.IndexFunc(items, func(i job.ReportItem) bool { return i.Key == key && i.Status == status })
		if i >= 0 {
			return status, i
		}
	}
	return "", -1
}

func failedItem(jobID string, i job.Item) FailedItem {
	return FailedItem{
		JobID: jobID, ID: i.ID, Key: i.Key, Description: i.Description,
		ExpectedOutcome: i.ExpectedOutcome, Severity: i.Severity,
	}
}

// see records what a test says about an item, and whether that is a regression:
// the test before had passed it.
func (f *historyFold) see(p *pastProject, test *historyTestRow, place int, i job.Item, status job.ItemStatus) (regressed bool) {
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
	regressed = status == job.ItemFail && row.SeenIn == test.N-1 && row.SeenAs == job.ItemPass
	row.SeenIn, row.SeenAs = test.N, status
	testedAt := test.TestedAt
	switch status {
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

// write puts the folded batch into the tables, a statement per table.
func (f *historyFold) write(ctx context.Context, tx *sqlx.Tx, schema string) error {
	var projects []historyProjectRow
	for _, p := range f.touched {
		if err := p.seal(); err != nil {
			return err
		}
		projects = append(projects, p.row)
	}
	var opened []historyJobRow
	for _, id := range f.opened {
		if projectID, live := f.jobs[id]; live {
			opened = append(opened, historyJobRow{JobID: id, ProjectID: projectID})
		}
	}
	if err := writeRows(ctx, tx, schema, writeHistoryProjectsSQL, projects); err != nil {
		return fmt.Errorf("write projects: %w", err)
	}
	if err := writeRows(ctx, tx, schema, writeHistoryTestsSQL, f.changed); err != nil {
		return fmt.Errorf("write tests: %w", err)
	}
	if err := writeRows(ctx, tx, schema, writeHistoryItemsSQL, f.seen); err != nil {
		return fmt.Errorf("write items: %w", err)
	}
	if err := writeRows(ctx, tx, schema, insertHistoryJobsSQL, opened); err != nil {
		return fmt.Errorf("insert jobs: %w", err)
	}
	if len(f.ended) == 0 {
		return nil
	}
	if _, err := tx.ExecContext(ctx, in(schema, deleteHistoryJobsSQL), pq.Array(f.ended)); err != nil {
		return fmt.Errorf("delete jobs: %w", err)
	}
	return nil
}

// past opens a row for folding.
func (r historyProjectRow) past() (*pastProject, error) {
	p := &pastProject{row: r, state: project.State{Exists: true, AccountID: r.AccountID, Name: r.Name}}
	for _, part := range []struct {
		data []byte
		into any
	}{{r.Failures, &p.failures}, {r.Regressions, &p.regressions}, {r.Queue, &p.state.Queue}} {
		if err := json.Unmarshal(part.data, part.into); err != nil {
			return nil, fmt.Errorf("decode the history of project %s: %w", r.ProjectID, err)
		}
	}
	return p, nil
}

// seal is past's way back.
func (p *pastProject) seal() error {
	p.row.AccountID, p.row.Name = p.state.AccountID, p.state.Name
	for _, part := range []struct {
		data *json.RawMessage
		from any
	}{{&p.row.Failures, p.failures}, {&p.row.Regressions, p.regressions}, {&p.row.Queue, append([]project.Fix{}, p.state.Queue...)}} {
		data, err := json.Marshal(part.from)
		if err != nil {
			return fmt.Errorf("encode the history of project %s: %w", p.row.ProjectID, err)
		}
		*part.data = data
	}
	return nil
}
