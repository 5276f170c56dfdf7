package readmodel

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type inner struct {
	Name string `json:"name"`
}

type named string

type anyRow struct {
	ID    uint64          `json:"id"`
	Text  string          `json:"text"`
	Kind  named           `json:"kind"`
	Truth bool            `json:"truth"`
	Count *int            `json:"count"`
	At    time.Time       `json:"at"`
	Ended *time.Time      `json:"ended"`
	List  pq.StringArray  `json:"list"`
	Value JSON[[]inner]   `json:"value"`
	Whole inner           `json:"whole"`
	Raw   json.RawMessage `json:"raw"`
}

const anyRowsDDL = `
CREATE SCHEMA few;
CREATE TABLE few.rows (
    id    bigint PRIMARY KEY,
    text  text NOT NULL,
    kind  text NOT NULL,
    truth boolean NOT NULL,
    count integer,
    at    timestamptz NOT NULL,
    ended timestamptz,
    list  text[] NOT NULL,
    value jsonb NOT NULL,
    whole jsonb NOT NULL,
    raw   jsonb NOT NULL
);
CREATE SCHEMA many;
CREATE TABLE many.rows (LIKE few.rows)`

// Many rows are copied, few come in one statement: both write the same.
func TestHowManyRowsAreAppendedDoesNotMatter(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	_, err := db.ExecContext(t.Context(), anyRowsDDL)
	must.NoError(t, err)
	texts := []string{"", "plain", `\N`, `\.`, "tab\tline\nreturn\r", `back\slash "quoted" 'so'`, "{a,b}", "é 漢 😀", "not \xff UTF-8", "NULL"}
	at := time.Date(2026, 3, 29, 1, 30, 0, 123e6, time.UTC)
	rows := make([]*anyRow, copied)
	for i := range rows {
		text := texts[i%len(texts)]
		rows[i] = &anyRow{
			ID: uint64(i), Text: text, Kind: named(text), Truth: i%2 == 0, At: at.Add(time.Duration(i) * time.Hour),
			List: pq.StringArray{text, "b"}[: i%3 : 2], Whole: inner{text}, Raw: json.RawMessage(`{"a": "\\\t"}`),
		}
		rows[i].Value.V = []inner{{text}}
		if i%2 == 0 {
			rows[i].Count, rows[i].Ended = &i, &at
		}
	}
	err = pgpool.InTx(t.Context(), db, func(tx *sqlx.Tx) error {
		for _, row := range rows {
			if err := Append("rows", []*anyRow{row})(t.Context(), tx, "few"); err != nil {
				return fmt.Errorf("%q: %w", row.Text, err)
			}
		}
		return Append("rows", rows)(t.Context(), tx, "many")
	})
	must.NoError(t, err)
	var found []int
	err = db.SelectContext(t.Context(), &found, `
SELECT COUNT(*) FROM few.rows
UNION ALL
SELECT COUNT(*) FROM (SELECT * FROM few.rows INTERSECT SELECT * FROM many.rows) same`)
	if err != nil || found[0] != copied || found[1] != copied {
		t.Errorf("of %d rows some differ: %v, %v", copied, found, err)
	}
	// What is there already is refused either way.
	for schema, again := range map[string][]*anyRow{"few": rows[:1], "many": rows} {
		err := pgpool.InTx(t.Context(), db, func(tx *sqlx.Tx) error { return Append("rows", again)(t.Context(), tx, "few") })
		if err == nil || !strings.Contains(err.Error(), "duplicate key") {
			t.Errorf("%s: got %v", schema, err)
		}
	}
}
