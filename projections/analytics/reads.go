package analytics

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/internal/pgpool"
	"humanqa/internal/tabular"
	"humanqa/projections/events"
	"humanqa/projections/readmodel"
)

// Reads reads the views.
type Reads struct{ db *sqlx.DB }

// NewReads reads through schema analytics.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Find gives a view by its name.
func Find(name string) (View, bool) {
	i := slices.IndexFunc(Views(), func(v View) bool { return v.Name == name })
	if i < 0 {
		return View{}, false
	}
	return Views()[i], true
}

// Table lists the view's columns, as they are written.
func (v View) Table() []tabular.Column {
	out := make([]tabular.Column, len(v.Columns))
	for i, c := range v.Columns {
		out[i] = c.Column
	}
	return out
}

// HasTime says that the rows of a period can be asked for.
func (v View) HasTime() bool { return v.Time != "" }

// Filter narrows an export; zero fields don't. Since is inclusive, and Until is not.
type Filter struct {
	AccountID    string
	Since, Until *time.Time
	// After leaves the rows of jobs that may have changed behind a position. Of a ledger it
	// leaves the entries from Entry on.
	After domain.Position
	Entry uint64
}

// A change of a row of an open job may not be announced: it went back, an item was checked,
// or its checklist was written.
const changedSQL = `
  AND job_id IN (
    SELECT substr(stream, %d)
    FROM readmodel.account_events
    WHERE account_id = %s
      AND (commit_position, prepare_position) > (%s, %s)
    UNION ALL
    SELECT id
    FROM readmodel.jobs
    WHERE account_id = %[2]s
      AND status IN ('pending', 'claimed')
      AND (claimed_at IS NOT NULL OR returns <> '[]' OR generated_by <> ''))`

// Within adds the times of the filter as conditions on a column.
func (f Filter) Within(w *readmodel.Where, column string) {
	if f.Since != nil {
		w.And(column+" >= %s", *f.Since)
	}
	if f.Until != nil {
		w.And(column+" < %s", *f.Until)
	}
}

// Each passes the view's rows one by one, as they come from Postgres. Memory does not
// grow with them, and all rows are of one moment.
func (q *Reads) Each(ctx context.Context, v View, f Filter, each func(row []any) error) error {
	return q.each(ctx, v, f, "analytics."+v.Name, &readmodel.Where{}, each)
}

// Sources are queries that stand for tables of schema readmodel, by the table's
// name. They may have parameters of their own.
type Sources func(w *readmodel.Where) (map[string]string, error)

// Rows is a source of rows of a table as a projector writes them. The expressions of a
// view apply to them as to the table's own rows.
func Rows(w *readmodel.Where, table string, rows any) (string, error) {
	data, err := json.Marshal(rows)
	if err != nil {
		return "", fmt.Errorf("encode rows of %s: %w", table, err)
	}
	return "SELECT * FROM json_populate_recordset(NULL::readmodel." + table + ", " + w.Param(string(data)) + "::json)", nil
}

// EachOf is Each with other rows in the place of the view's tables.
func (q *Reads) EachOf(ctx context.Context, v View, f Filter, of Sources, each func(row []any) error) error {
	where := &readmodel.Where{}
	from := v.From
	sources, err := of(where)
	if err != nil {
		return err
	}
	for table, source := range sources {
		from = strings.ReplaceAll(from, "readmodel."+table+" ", "("+source+") ")
	}
	return q.each(ctx, v, f, "("+v.selectFrom(from)+") v", where, each)
}

func (q *Reads) each(ctx context.Context, v View, f Filter, from string, where *readmodel.Where, each func(row []any) error) error {
	names := make([]string, len(v.Columns))
	for i, c := range v.Columns {
		names[i] = c.Name
	}
	query := "SELECT " + strings.Join(names, ", ") + " FROM " + from
	if f.AccountID != "" {
		where.And("account_id = %s", f.AccountID)
	}
	if v.HasTime() {
		f.Within(where, v.Time)
	}
	switch {
	case f.After == (domain.Position{}):
	case v.Name == "ledger":
		where.And("entry >= %s", f.Entry)
	default:
		where.SQL += fmt.Sprintf(changedSQL, len(domain.JobStreams)+1, where.Param(f.AccountID),
			where.Param(f.After.Commit), where.Param(f.After.Prepare))
	}
	query += " WHERE TRUE" + where.SQL + " ORDER BY " + v.Key
	rows, err := q.db.QueryxContext(ctx, query, where.Args...) //nolint:sqlclosecheck // it is closed below: the linter does not know sqlx
	if err != nil {
		return fmt.Errorf("read analytics.%s: %w", v.Name, err)
	}
	defer rows.Close()
	for rows.Next() {
		row, err := rows.SliceScan()
		if err != nil {
			return fmt.Errorf("read analytics.%s: %w", v.Name, err)
		}
		for i, value := range row {
			if text, ok := value.([]byte); ok {
				row[i] = string(text)
			}
		}
		if err := each(row); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read analytics.%s: %w", v.Name, err)
	}
	return nil
}

// PassRate has the sums of the completed tests of a group. Fields that were not grouped
// by are zero.
type PassRate struct {
	Week      *time.Time `json:"week"` // its Monday, UTC
	JobType   string     `json:"job_type"`
	ProjectID string     `json:"project_id"` // empty also for jobs of no project
	Completed int        `json:"completed"`
	Passed    int        `json:"passed"`
	Failed    int        `json:"failed"`
}

// Dimensions are the possible groupings of a pass rate.
var Dimensions = []string{"week", "jobType", "project"}

// PassRates groups an account's completed jobs, in the order of the groups. projectID
// narrows them to a project, as for a project-bound key. then, where it is given, narrows
// them to jobs that were completed by then.
func (q *Reads) PassRates(ctx context.Context, accountID, projectID string, by []string, then *events.Until) ([]PassRate, error) {
	pick := func(dimension, column, otherwise string) string {
		if slices.Contains(by, dimension) {
			return column
		}
		return otherwise
	}
	where := &readmodel.Where{Args: []any{accountID, projectID}}
	from := "analytics.jobs"
	if then != nil {
		from = "(SELECT j.* FROM analytics.jobs j" + then.JoinThen(where, "j.job_id") +
			" WHERE j.account_id = $1 AND past.status = 'completed' AND " + then.Began(where, accountID, "j.job_id", "j.created_at") + ") j"
	}
	query := `
SELECT ` + pick("week", "date_trunc('week', completed_at, 'UTC')", "NULL::timestamptz") + ` AS week,
       ` + pick("jobType", "job_type", "''") + ` AS job_type,
       ` + pick("project", "COALESCE(project_id, '')", "''") + ` AS project_id,
       COUNT(*) AS completed,
       COUNT(*) FILTER (WHERE overall_status = 'pass') AS passed,
       COUNT(*) FILTER (WHERE overall_status = 'fail') AS failed
FROM ` + from + `
WHERE account_id = $1
  AND status = 'completed'
  AND ($2 = '' OR project_id = $2)
GROUP BY 1, 2, 3
ORDER BY 1, 2, 3`
	return pgpool.List[PassRate](ctx, q.db, "the pass rates of "+accountID, query, where.Args...)
}

// ErrNoView refuses an unknown view, and lists the known ones.
func ErrNoView(name string) error {
	names := make([]string, 0, len(Views()))
	for _, v := range Views() {
		names = append(names, v.Name)
	}
	return domain.NotFound("export "+name).WithHint("there are %s", strings.Join(names, ", "))
}
