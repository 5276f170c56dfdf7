// Package analytics has the views for analysts in schema analytics, stable and
// documented, over the read models. A rebuild never drops them, because it replaces
// the views of schema readmodel in place. They hold no secret, no hash and no
// checker's name. Exports may put folded rows in the place of tables (EachOf).
package analytics

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain/job"
	"humanqa/internal/pgpool"
	"humanqa/internal/tabular"
)

// View is a view of schema analytics. Its columns never change; new columns come
// behind them.
type View struct {
	Name    string
	About   string
	Columns []Column
	from    string // FROM and WHERE; the columns' expressions read its rows
	key     string // an order without ties, which separates pages
	time    string // the column that --since and --until compare
}

// Column is a column of a view.
type Column struct {
	tabular.Column

	About string
	is    string // the expression
}

func col(name string, kind tabular.Kind, is, about string) Column {
	return Column{Column: tabular.Column{Name: name, Kind: kind}, About: about, is: is}
}

// Views lists the schema.
func Views() []View { return []View{jobs, items, tests, ledger, projects, accounts} }

var jobs = View{
	Name: "jobs", About: "One row a job, in every state.", key: "job_id", time: "created_at",
	from: "readmodel.jobs j",
	Columns: []Column{
		col("job_id", tabular.Text, "j.id", "the job"),
		col("account_id", tabular.Text, "j.account_id", "the account that owns it"),
		col("project_id", tabular.Text, "NULLIF(j.project_id, '')", "its project; null for none"),
		col("status", tabular.Text, "j.status", "pending, claimed, completed, cancelled or failed"),
		col("job_type", tabular.Text, "j.type", "the code, such as payment_flow"),
		col("urgent", tabular.Truth, "j.urgent", "urgent priority"),
		col("source", tabular.Text, "j.source", "api, hosted, session, retest, bulk, deploy or loop"),
		col("title", tabular.Text, "j.title", "the title"),
		col("url", tabular.Text, "j.url", "the URL under test"),
		col("sla_minutes", tabular.Number, "j.sla_minutes::bigint", "the promised minutes"),
		col("credits_used", tabular.Number, "(j.price - j.refunded)", "net of refunds"),
		col("requeue_count", tabular.Number, "j.requeue_count::bigint", "the number of missed SLAs"),
		col("overall_status", tabular.Text, "NULLIF(j.overall_status, '')", "pass, fail or inconclusive; null without a report"),
		col("created_at", tabular.Moment, "j.created_at", "submitted"),
		col("claimed_at", tabular.Moment, "j.claimed_at", "claimed by a checker; null without a claim"),
		col("completed_at", tabular.Moment, "j.completed_at", "null unless completed"),
		col("ended_at", tabular.Moment, "COALESCE(j.completed_at, j.cancelled_at, j.failed_at)",
			"completed, cancelled or failed; null while open"),
		col("sandbox", tabular.Truth, "j.sandbox", "of a sandbox account: no person tested it"),
		col("fail_reason", tabular.Text, "NULLIF(j.fail_reason, '')", strings.Join(job.FailReasons(), ", ")+"; null unless failed"),
		// During an upgrade the rows of an older version serve until the new ones are
		// built. They have no such column.
		col("fail_note", tabular.Text, "NULLIF(to_jsonb(j) ->> 'fail_note', '')", "the words of checkers that could not test it, a line each; null without any"),
		col("batch_id", tabular.Text, "NULLIF(j.batch_id, '')", "its bulk submission; null for none"),
		col("batch_name", tabular.Text, "NULLIF(to_jsonb(j) ->> 'batch_name', '')", "the name of that; null without one"),
	},
}

var items = View{
	Name: "items", About: "One row an item of a job's checklist, findings included.", key: "job_id, place", time: "created_at",
	from: "readmodel.jobs j CROSS JOIN LATERAL jsonb_array_elements(j.items) WITH ORDINALITY AS i (item, place)",
	Columns: []Column{
		col("job_id", tabular.Text, "j.id", "the job"),
		col("place", tabular.Number, "i.place", "the item's place in the list, from 1"),
		col("account_id", tabular.Text, "j.account_id", "the account that owns it"),
		col("project_id", tabular.Text, "NULLIF(j.project_id, '')", "its project; null for none"),
		col("item_id", tabular.Text, "i.item->>'id'", "the item's id in its job"),
		col("key", tabular.Text, "i.item->>'key'", "the same in every test of the project"),
		col("description", tabular.Text, "i.item->>'description'", "the check"),
		col("severity", tabular.Text, "i.item->>'severity'", "critical, major or minor"),
		col("status", tabular.Text, "i.item->>'status'", "pass, fail, skip or pending"),
		col("note", tabular.Text, "NULLIF(i.item->>'note', '')", "the checker's words"),
		col("created_at", tabular.Moment, "j.created_at", "submission of the job"),
		col("completed_at", tabular.Moment, "j.completed_at", "completion of the job; null before"),
	},
}

var tests = View{
	Name: "tests", About: "One row a completed test of a project, in the order of completion.", key: "job_id", time: "tested_at",
	from: "readmodel.history_tests t JOIN readmodel.history_projects p ON p.project_id = t.project_id",
	Columns: []Column{
		col("job_id", tabular.Text, "t.job_id", "the job"),
		col("account_id", tabular.Text, "t.account_id", "the account that owns it"),
		col("project_id", tabular.Text, "t.project_id", "the project"),
		col("project_name", tabular.Text, "p.name", "its name today"),
		col("n", tabular.Number, "t.n::bigint", "the project's first test is 1"),
		col("overall_status", tabular.Text, "t.overall_status", "pass, fail or inconclusive"),
		col("pass_count", tabular.Number, "t.pass_count::bigint", "items that passed"),
		col("fail_count", tabular.Number, "t.fail_count::bigint", "items that failed"),
		col("health_score", tabular.Number, "t.health_score::bigint", "0 to 100; null without an AI report"),
		col("tested_at", tabular.Moment, "t.tested_at", "completion of the test"),
	},
}

var ledger = View{
	Name: "ledger", About: "One row an entry of an account's credits; the changes of an account add up to its newest balance.",
	key: "account_id, entry", time: "at",
	from: "readmodel.ledger_entries l",
	Columns: []Column{
		col("account_id", tabular.Text, "l.account_id", "the account that owns it"),
		col("entry", tabular.Number, "l.revision", "the entry's place in the ledger, from 0"),
		col("at", tabular.Moment, "l.at", "time of the entry"),
		col("kind", tabular.Text, "l.kind", "granted, debited, refunded or expired"),
		col("change", tabular.Number, "l.change", "the change of the balance"),
		col("balance", tabular.Number, "l.balance", "the balance after it"),
		col("expired", tabular.Number, "l.expired", "the part of a refund for lots that had expired"),
		col("job_id", tabular.Text, "NULLIF(l.job_id, '')", "the job; null for grants and expiries"),
		col("reason", tabular.Text, "NULLIF(l.reason, '')", "the reason, if there is one"),
	},
}

var projects = View{
	Name: "projects", About: "One row a project, with the sums of its tests.", key: "project_id",
	from: "readmodel.history_projects p",
	Columns: []Column{
		col("project_id", tabular.Text, "p.project_id", "the project"),
		col("account_id", tabular.Text, "p.account_id", "the account that owns it"),
		col("name", tabular.Text, "p.name", "its name"),
		col("tests", tabular.Number, "p.tests::bigint", "completed tests"),
		col("passed", tabular.Number, "p.passed::bigint", "of them, passed"),
		col("failed", tabular.Number, "p.failed::bigint", "of them, failed"),
	},
}

var accounts = View{
	Name:  "accounts",
	About: "One row an account. Of an erased account only the history is left: its keys, secrets, webhooks, evidence and people are gone.",
	key:   "account_id",
	from:  "readmodel.accounts a LEFT JOIN readmodel.erasures e ON e.account_id = a.account_id",
	Columns: []Column{
		col("account_id", tabular.Text, "a.account_id", "the account"),
		col("name", tabular.Text, "a.name", "its name, or (erased)"),
		col("sandbox", tabular.Truth, "a.sandbox", "no person tests its jobs"),
		col("status", tabular.Text, "CASE WHEN e.erased_at IS NOT NULL THEN 'erased' WHEN a.suspended THEN 'suspended' ELSE 'active' END",
			"active, suspended or erased"),
		col("erased_at", tabular.Moment, "e.erased_at", "time of the erasure; null without one"),
		col("erased_by", tabular.Text, "e.erased_by", "the operator of the erasure"),
		col("erased_for", tabular.Text, "e.reason", "the reason of the erasure"),
		col("erasure_finished_at", tabular.Moment, "e.finished_at", "time at which nothing was left; null before"),
	},
}

// Prepare makes the schema and its missing views, after the read models have
// their tables. Any number of processes may run it.
func Prepare(ctx context.Context, db *sqlx.DB) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtext('humanqa.analytics'))`); err != nil {
			return fmt.Errorf("lock schema analytics: %w", err)
		}
		statements := []string{`CREATE SCHEMA IF NOT EXISTS analytics`,
			`COMMENT ON SCHEMA analytics IS 'Views for analysts; see docs/analytics.md. Their columns never change.'`}
		for _, v := range Views() {
			statements = append(statements, v.statements()...)
		}
		for _, s := range statements {
			if _, err := tx.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("make schema analytics: %w", err)
			}
		}
		return nil
	})
}

// selectFrom is the view's query over these rows.
func (v View) selectFrom(from string) string {
	columns := make([]string, len(v.Columns))
	for i, c := range v.Columns {
		columns[i] = c.is + " AS " + c.Name
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + from
}

func (v View) statements() []string {
	comments := []string{fmt.Sprintf("COMMENT ON VIEW analytics.%s IS %s", v.Name, pq.QuoteLiteral(v.About))}
	for _, c := range v.Columns {
		comments = append(comments, fmt.Sprintf("COMMENT ON COLUMN analytics.%s.%s IS %s", v.Name, c.Name, pq.QuoteLiteral(c.About)))
	}
	create := fmt.Sprintf("CREATE OR REPLACE VIEW analytics.%s AS %s", v.Name, v.selectFrom(v.from))
	return append([]string{create}, comments...)
}
