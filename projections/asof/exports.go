package asof

import (
	"context"
	"fmt"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/internal/pgpool"
	"humanqa/projections/analytics"
	"humanqa/projections/events"
	"humanqa/projections/people"
	"humanqa/projections/readmodel"
)

// Export is analytics.Reads.Each of one account; as it was, if a place is named.
func (q *Reads) Export(
	ctx context.Context, v analytics.View, f analytics.Filter, then *events.Until, each func(row []any) error,
) (err error) {
	if f.After != (domain.Position{}) && v.Name == "ledger" {
		if f.Entry, err = q.Ledger(ctx, f.AccountID, events.Until{Position: f.After}); err != nil {
			return err
		}
	}
	if then == nil {
		return q.reads.Analytics.Each(ctx, v, f, each)
	}
	at := *then
	switch v.Name {
	case "jobs", "items":
		return q.exportJobs(ctx, v, f, at, each)
	case "ledger":
		before, err := q.Ledger(ctx, f.AccountID, at)
		if err != nil {
			return err
		}
		return q.reads.Analytics.EachOf(ctx, v, f, func(w *readmodel.Where) (map[string]string, error) {
			return map[string]string{"ledger_entries": "SELECT * FROM readmodel.ledger_entries WHERE account_id = " + w.Param(f.AccountID) +
				" AND revision < " + w.Param(before)}, nil
		}, each)
	case "accounts":
		row, err := q.account(ctx, f.AccountID, at)
		if err != nil || row == nil {
			return err
		}
		return q.exportRows(ctx, v, f, "accounts", []any{row}, each)
	case "projects", "tests":
		return q.exportProjects(ctx, v, f, at, each)
	}
	return fmt.Errorf("the earlier value of %s is not known", v.Name)
}

func (q *Reads) exportRows(
	ctx context.Context, v analytics.View, f analytics.Filter, table string, rows []any, each func(row []any) error,
) error {
	return q.reads.Analytics.EachOf(ctx, v, f, func(w *readmodel.Where) (map[string]string, error) {
		source, err := analytics.Rows(w, table, rows)
		return map[string]string{table: source}, err
	}, each)
}

// account is nil before the account was opened.
func (q *Reads) account(ctx context.Context, accountID string, at events.Until) (row *people.Account, err error) {
	err = q.each(ctx, domain.AccountStream(accountID), at, func(r domain.Recorded) error {
		switch e := r.Event.(type) {
		case *account.Created:
			row = &people.Account{ID: accountID, Name: e.Name, Sandbox: e.Sandbox}
		case *account.Suspended:
			row.Suspended = true
		case *account.Reinstated:
			row.Suspended = false
		}
		return nil
	})
	return row, err
}

// exportJobs reads the streams of the jobs that had not ended, and of those with a dispute.
// An end absorbs, so the row of any other job that had ended by then has shown the same since.
func (q *Reads) exportJobs(ctx context.Context, v analytics.View, f analytics.Filter, at events.Until, each func(row []any) error) error {
	of, err := q.account(ctx, f.AccountID, at)
	if err != nil || of == nil {
		return err
	}
	then := func(w *readmodel.Where, columns, folded string) string {
		return "SELECT " + columns + " FROM readmodel.jobs j" + at.JoinThen(w, "j.id") + " WHERE j.account_id = " + w.Param(f.AccountID) +
			" AND " + at.Began(w, f.AccountID, "j.id", "j.created_at") + " AND past.created AND (past.status IS NULL OR j.disputes <> '[]') IS " + folded
	}
	w := &readmodel.Where{}
	query := then(w, "j.id", "TRUE")
	f.Within(w, "j.created_at")
	open, err := pgpool.List[string](ctx, q.db, "the jobs that had not ended", query+w.SQL, w.Args...)
	if err != nil {
		return err
	}
	rows := make([]any, len(open))
	for i, id := range open {
		past, err := q.job(ctx, id, of.Sandbox, at)
		if err != nil {
			return err
		}
		rows[i] = past.Row()
	}
	return q.reads.Analytics.EachOf(ctx, v, f, func(w *readmodel.Where) (map[string]string, error) {
		folded, err := analytics.Rows(w, "jobs", rows)
		return map[string]string{"jobs": then(w, "j.*", "FALSE") + " UNION ALL " + folded}, err
	}, each)
}

func (q *Reads) exportProjects(
	ctx context.Context, v analytics.View, f analytics.Filter, at events.Until, each func(row []any) error,
) error {
	ids, err := q.reads.Projects.IDs(ctx, f.AccountID, "")
	if err != nil {
		return err
	}
	counts, err := q.counts(ctx, f.AccountID, "", at)
	if err != nil {
		return err
	}
	rows := []any{}
	for _, id := range ids {
		s, err := q.state(ctx, id, at)
		if err != nil {
			return err
		}
		if c := counts[id]; s.Exists {
			rows = append(rows, map[string]any{ // the columns of history_projects that the views show
				"project_id": id, "account_id": s.AccountID, "name": s.Name, "tests": c.Completed, "passed": c.Passed, "failed": c.Failed,
			})
		}
	}
	if v.Name == "projects" {
		return q.exportRows(ctx, v, f, "history_projects", rows, each)
	}
	return q.reads.Analytics.EachOf(ctx, v, f, func(w *readmodel.Where) (map[string]string, error) {
		named, err := analytics.Rows(w, "history_projects", rows)
		if err != nil {
			return nil, err
		}
		then, err := q.jobsThen(ctx, w, f.AccountID, at)
		tests := "SELECT t.job_id, t.account_id, t.project_id, t.n, j.overall_status, j.report_pass AS pass_count," +
			" j.report_fail AS fail_count, t.tested_at, CASE WHEN past.analysed THEN (j.ai_report::jsonb ->> 'healthScore')::integer END" +
			" AS health_score FROM readmodel.history_tests t JOIN " + then + " AS j ON j.id = t.job_id" +
			at.JoinThen(w, "t.job_id") + " WHERE past.status = 'completed' AND t.account_id = " + w.Param(f.AccountID) +
			" AND " + at.Began(w, f.AccountID, "t.job_id", "t.tested_at")
		return map[string]string{"history_projects": named, "history_tests": tests}, err
	}, each)
}
