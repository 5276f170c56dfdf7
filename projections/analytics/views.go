// Package analytics has the views for analysts in schema analytics, stable and
// documented, over the read models. A rebuild never drops them, because it replaces
// the views of schema readmodel in place. They hold no secret, no hash and no
// checker's name. Exports may put folded rows in the place of tables (EachOf).
package analytics

import (
	"context"
	_ "embed" // views.yaml
	"fmt"
	"strings"
	"sync"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"go.yaml.in/yaml/v3"

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
	From    string // FROM and WHERE; the columns' expressions read its rows
	Key     string // an order without ties, which separates pages
	Time    string // the column that --since and --until compare
}

// Column is a column of a view.
type Column struct {
	tabular.Column

	About string
	is    string // the expression
}

//go:embed views.yaml
var viewsYAML []byte

// Views lists the schema.
var Views = sync.OnceValue(func() (views []View) {
	if err := yaml.Unmarshal(viewsYAML, &views); err != nil {
		panic(err) // the file is a part of the binary
	}
	return views
})

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *Column) UnmarshalYAML(n *yaml.Node) error {
	var in struct{ Name, Kind, Is, About string }
	if err := n.Decode(&in); err != nil {
		return err
	}
	kinds := map[string]tabular.Kind{"text": tabular.Text, "number": tabular.Number, "truth": tabular.Truth, "moment": tabular.Moment}
	kind, known := kinds[in.Kind]
	if !known {
		return fmt.Errorf("line %d: there is no kind %q", n.Line, in.Kind)
	}
	about := strings.ReplaceAll(in.About, "{failReasons}", strings.Join(job.FailReasons(), ", "))
	*c = Column{Column: tabular.Column{Name: in.Name, Kind: kind}, About: about, is: in.Is}
	return nil
}

// Prepare makes the schema and its missing views, after the read models have
// their tables. Any number of processes may run it.
func Prepare(ctx context.Context, db *sqlx.DB) error {
	return pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
		statements := []string{`SELECT pg_advisory_xact_lock(hashtext('humanqa.analytics'))`, `CREATE SCHEMA IF NOT EXISTS analytics`,
			`COMMENT ON SCHEMA analytics IS 'Views for analysts; see docs/analytics.md. Their columns never change.'`}
		for _, v := range Views() {
			statements = append(statements, v.statements()...)
		}
		for _, s := range statements {
			if err := pgpool.Exec(ctx, tx, "make schema analytics", s); err != nil {
				return err
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
	create := fmt.Sprintf("CREATE OR REPLACE VIEW analytics.%s AS %s", v.Name, v.selectFrom(v.From))
	return append([]string{create}, comments...)
}
