package projections_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/access"
	"humanqa/projections/analytics"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
	"humanqa/projections/ledger"
)

// setupAnalytics has rows in every view.
func setupAnalytics(t *testing.T) *modeltest.World {
	t.Helper()
	w := modeltest.New(t, jobs.Projector, history.Projector, ledger.Projector, access.Projector, access.Erasures)
	for range 2 { // as every start does
		must.NoError(t, analytics.Prepare(w.Ctx(), w.DB))
	}
	modeltest.Everything(w.Log)
	w.Log.Record(domain.CreditsStream("acc"),
		&credits.Granted{LotID: "l", Amount: 10, BalanceAfter: 10}, &credits.Debited{JobID: "j", Amount: 4, Parts: []credits.Part{{LotID: "l", Amount: 4}}, BalanceAfter: 6})
	w.Log.Record(domain.AccountStream("gone"), &account.Created{Name: "Acme"}, &account.Erased{By: "ann", Reason: "asked for"})
	w.Run(w.Sup)
	w.Reach(w.Sup)
	return w
}

// Each question of the document is asked, and its answer has columns.
func TestEveryQuestionOfTheDocumentHasAnAnswer(t *testing.T) {
	t.Parallel()
	w := setupAnalytics(t)
	text, err := os.ReadFile("../docs/analytics.md")
	must.NoError(t, err)
	questions := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(questions) != 10 {
		t.Errorf("%d questions", len(questions))
	}
	for _, q := range questions {
		rows, err := w.DB.QueryContext(w.Ctx(), q[1])
		if err != nil {
			t.Errorf("%v:\n%s", err, q[1])
			continue
		}
		for rows.Next() {
			continue
		}
		if err := rows.Err(); err != nil {
			t.Errorf("%v:\n%s", err, q[1])
		}
		_ = rows.Close()
	}
}

func TestTheDocumentDescribesEveryColumn(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, v := range analytics.Views() {
		fmt.Fprintf(&b, "### %s\n%s\n\n| Column | |\n|---|---|\n", v.Name, v.About)
		for _, c := range v.Columns {
			fmt.Fprintf(&b, "| `%s` | %s |\n", c.Name, c.About)
		}
		b.WriteString("\n")
	}
	const file = "../docs/analytics.md"
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	before, rest, _ := strings.Cut(string(text), "## Views\n\n")
	_, after, _ := strings.Cut(rest, "## Ten questions\n")
	want := before + "## Views\n\n" + b.String() + "## Ten questions\n" + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Error("docs/analytics.md does not tell the views as they are: run go test ./projections -run TestTheDocumentDescribesEveryColumn -update")
	}
}

// The views, what was granted on them and what stands on them outlive a rebuild
// of what they are made of, and show the same rows.
func TestARebuildDropsNothing(t *testing.T) {
	t.Parallel()
	w := setupAnalytics(t)
	role := "analyst_" + fmt.Sprint(time.Now().UnixNano())
	w.Exec(`CREATE ROLE ` + role)
	t.Cleanup(func() { w.Exec(`DROP OWNED BY ` + role); w.Exec(`DROP ROLE ` + role) })
	w.Exec(`GRANT SELECT ON ALL TABLES IN SCHEMA analytics TO ` + role)
	w.Exec(`CREATE VIEW own AS SELECT status, count(*) FROM analytics.jobs GROUP BY 1`)
	before := map[string]int{}
	for _, v := range analytics.Views() {
		if before[v.Name] = w.Count(`SELECT COUNT(*) FROM analytics.` + v.Name); before[v.Name] == 0 {
			t.Errorf("nothing came into %s: it was not tested", v.Name)
		}
	}
	for _, p := range []consumer.Projector{jobs.Projector, history.Projector, ledger.Projector} {
		must.NoError(t, w.Sup.RebuildAll(w.Ctx(), []string{p.Name()}, nil))
	}
	for _, v := range analytics.Views() {
		if n := w.Count(`SELECT COUNT(*) FROM analytics.` + v.Name); n != before[v.Name] {
			t.Errorf("%s has %d rows, had %d", v.Name, n, before[v.Name])
		}
		if w.Count(`SELECT has_table_privilege($1, $2, 'SELECT')::int`, role, "analytics."+v.Name) != 1 {
			t.Errorf("the right to read %s is gone", v.Name)
		}
	}
	w.Count(`SELECT COUNT(*) FROM own`)
}

// The rows come typed, narrowed to one account.
func TestTheRowsOfAnAccount(t *testing.T) {
	t.Parallel()
	w := setupAnalytics(t)
	reads := analytics.NewReads(w.DB)
	for _, v := range analytics.Views() {
		all, own := 0, 0
		for _, f := range []analytics.Filter{{}, {AccountID: "acc"}} {
			err := reads.Each(w.Ctx(), v, f, func(row []any) error {
				if f.AccountID == "" {
					all++
				} else {
					own++
				}
				for i, value := range row {
					if value == nil {
						continue
					}
					want := map[string]string{"0": "string", "1": "int64", "2": "bool", "3": "time.Time"}[fmt.Sprint(int(v.Columns[i].Kind))]
					if got := fmt.Sprintf("%T", value); got != want {
						t.Fatalf("%s.%s is a %s, not a %s", v.Name, v.Columns[i].Name, got, want)
					}
					if v.Columns[i].Name == "account_id" && f.AccountID != "" && value != f.AccountID {
						t.Errorf("%s shows %v's", v.Name, value)
					}
				}
				return nil
			})
			must.NoError(t, err)
		}
		if all == 0 || own > all {
			t.Errorf("%s: %d of %d rows", v.Name, own, all)
		}
	}
	jobsView := analytics.Views()[slices.IndexFunc(analytics.Views(), func(v analytics.View) bool { return v.Name == "jobs" })]
	later := modeltest.Noon.AddDate(1, 0, 0)
	if err := reads.Each(w.Ctx(), jobsView, analytics.Filter{Since: &later}, func([]any) error { return fmt.Errorf("a job of before") }); err != nil {
		t.Error(err)
	}
}
