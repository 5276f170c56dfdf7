package admit

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest/alltest"
	"humanqa/internal/testing/pgtest"
)

// Above rateSlots a slot holds several requests, and the limit still stands.
func TestAHighLimitIsKeptInABoundedRow(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	l := NewLimiter(db, 0)
	take := func() Allowance {
		q, err := l.CountRequest(t.Context(), "key:busy", 1000)
		must.NoError(t, err)
		return q
	}
	for left := 999; left >= 0; left-- {
		q := take()
		if !q.Admitted || q.remaining != left {
			t.Fatalf("%+v, want %d left", q, left)
		}
	}
	for range 3 {
		if q := take(); q.Admitted || q.remaining != 0 {
			t.Fatalf("%+v, want a refusal", q)
		}
	}
	var slots int
	if err := db.Get(&slots, `SELECT cardinality(slots) FROM http_rate WHERE caller = 'key:busy'`); err != nil || slots > rateSlots {
		t.Errorf("%d slots, %v", slots, err)
	}
	db.MustExec(`UPDATE http_rate SET slots = ARRAY(SELECT slot - 60000000 FROM unnest(slots) AS slot), at = at - 60000000`)
	same(t, take().remaining, 999)
}

// Requests that are counted together leave the row as each by itself would have.
func TestPlacesThatAreTakenTogetherAreCountedOneByOne(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	l := NewLimiter(db, 0)
	row := func(caller string) (layout [2]int) {
		must.NoError(t, db.QueryRowContext(t.Context(), `SELECT cardinality(slots), last FROM http_rate WHERE caller = $1`, caller).Scan(&layout[0], &layout[1]))
		return layout
	}
	many := func(caller string, limit, n int) []Allowance {
		allowances, err := l.countRequests(t.Context(), caller, limit, n)
		if err != nil || len(allowances) != n {
			t.Fatalf("%d for %d: %v", len(allowances), n, err)
		}
		return allowances
	}
	for _, limit := range []int{60, 700} { // a slot each, and three in one
		alone, together := fmt.Sprint("alone ", limit), fmt.Sprint("together ", limit)
		for _, n := range []int{1, 5, 3, 2, 1, 17, 4} {
			var want []Allowance
			for range n {
				want = append(want, many(alone, limit, 1)...)
			}
			for i, q := range many(together, limit, n) {
				if !q.Admitted || q.remaining != want[i].remaining {
					t.Errorf("limit %d: of %d the place %d leaves %+v, want %+v", limit, n, i, q, want[i])
				}
			}
			same(t, row(together), row(alone))
		}
	}
	// 33 places are taken.
	admitted := 0
	for _, q := range many("together 60", 60, 40) {
		if q.Admitted {
			admitted++
		}
	}
	same(t, admitted, 27)
	same(t, many("together 60", 60, 1)[0].Admitted, false)
	same(t, len(many("a few", 2, 5)), 5)
	same(t, row("a few"), [2]int{2, 1})
}

// The times of a row are sorted once, not for each place of the statement that names them.
func TestARowsTimesAreLookedAtOnce(t *testing.T) {
	t.Parallel()
	db := alltest.Database.New(t)
	for _, query := range []string{countSQL, countKeySQL} {
		var plan []string
		must.NoError(t, db.Select(&plan, "EXPLAIN "+strings.NewReplacer(
			"$1", "'a'", "$2", "60", "$3", "1", "$4", "60000000", "$5", "1", "$6", "now()").Replace(query)))
		if n := strings.Count(strings.Join(plan, "\n"), "Function Scan on unnest"); n != 1 {
			t.Errorf("%d times:\n%s", n, strings.Join(plan, "\n"))
		}
	}
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}
