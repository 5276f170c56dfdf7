package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// How the fold loads its rows, and writes them.

// load fetches the rows that the batch builds on: first jobs, then their projects, then
// the items.
func (f *historyFold) load(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var ended, analysed, projects []string
	created := map[string]string{}
	for _, r := range batch {
		id := r.StreamID()
		switch e := r.Event.(type) {
		case *job.Created:
			created[id] = e.ProjectID
		case *job.AIReportReady, *job.DisputeDecided, *job.Erased:
			analysed = append(analysed, id)
		case *job.Completed, *job.Cancelled, *job.Failed, *job.Voided:
			ended = append(ended, id)
		default:
			projects = append(projects, id)
		}
	}
	live, err := readmodel.Load[historyJobRow](ctx, tx, schema, "history_jobs", "job_id", ended)
	if err != nil {
		return err
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
	tests, err := readmodel.Load[historyTestRow](ctx, tx, schema, "history_tests", "job_id", analysed)
	if err != nil {
		return err
	}
	for _, row := range tests {
		f.tests[row.JobID] = &row
		projects = append(projects, row.ProjectID)
	}
	slices.Sort(projects)
	rows, err := readmodel.Load[historyProjectRow](ctx, tx, schema, "history_projects", "project_id", slices.Compact(projects))
	if err != nil {
		return err
	}
	for _, row := range rows {
		f.projects[row.ProjectID] = row.open()
	}
	return f.loadItems(ctx, tx, schema, batch, created)
}

// loadItems fetches the items of the tests that the batch completes, and those that it decides
// disputes about.
func (f *historyFold) loadItems(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded, created map[string]string) error {
	var accounts, projects, keys []string
	wanted := map[itemAt]bool{}
	for _, r := range batch {
		var items []string
		projectID := cmp.Or(f.jobs[r.StreamID()], created[r.StreamID()])
		switch e := r.Event.(type) {
		case *job.Completed:
			for _, i := range e.Items {
				items = append(items, i.Key)
			}
		case *job.DisputeDecided:
			items = []string{e.Key}
			if test := f.tests[r.StreamID()]; test != nil {
				projectID = test.ProjectID
			}
		}
		p := f.projects[projectID]
		if p == nil {
			continue // it begins in this batch, or there is none
		}
		for _, key := range items {
			if at := (itemAt{projectID, key}); !wanted[at] {
				wanted[at] = true
				accounts, projects, keys = append(accounts, p.state.AccountID), append(projects, projectID), append(keys, key)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	var rows []historyItemRow
	err := readmodel.Select(ctx, tx, schema, &rows, loadHistoryItemsSQL, pq.Array(accounts), pq.Array(projects), pq.Array(keys))
	if err != nil {
		return fmt.Errorf("load items: %w", err)
	}
	for _, row := range rows {
		f.items[itemAt{row.ProjectID, row.Key}] = &row
	}
	return nil
}

// write puts the folded batch into the tables, a statement per table.
func (f *historyFold) write(ctx context.Context, tx *sqlx.Tx, schema string) error {
	var projects []historyProjectRow
	for _, p := range f.touched {
		p.row.AccountID, p.row.Name, p.row.Queue = p.state.AccountID, p.state.Name, append([]project.Fix{}, p.state.Queue...)
		projects = append(projects, p.row)
	}
	var opened []historyJobRow
	for _, id := range f.opened {
		if projectID, live := f.jobs[id]; live {
			opened = append(opened, historyJobRow{JobID: id, ProjectID: projectID})
		}
	}
	err := readmodel.Run(ctx, tx, schema,
		readmodel.Upsert("history_projects", projects, "project_id"),
		readmodel.Write("write tests", writeHistoryTestsSQL, f.changed),
		readmodel.Write("add to weeks", addHistoryWeeksSQL, f.weeks),
		readmodel.Upsert("history_items", f.seen, "account_id", "project_id", "key"),
		readmodel.Write("insert jobs", insertHistoryJobsSQL, opened),
		readmodel.Write("insert deploys", insertHistoryDeploysSQL, f.deploys),
		readmodel.Write("erase items", eraseHistoryItemsSQL, f.erased),
	)
	if err != nil || len(f.ended) == 0 {
		return err
	}
	return pgpool.Exec(ctx, tx, "delete jobs", consumer.In(schema, deleteHistoryJobsSQL), pq.Array(f.ended))
}

// open is the project of a row, for folding.
func (r historyProjectRow) open() *foldedProject {
	return &foldedProject{row: r, state: project.State{Exists: true, AccountID: r.AccountID, Name: r.Name, Queue: r.Queue}}
}
