package erase

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/pgpool"
)

// shortestNeedle is the least length of a text that is searched for, in characters: a
// shorter one stands in texts of others by chance.
const shortestNeedle = 8

// Place is where a search has found one of the texts.
type Place struct {
	Where string `json:"where"` // a table, or log and stream
	Of    string `json:"of,omitempty"`
	Count int    `json:"count"`
}

// owners is how many owners of the same words a line names.
const owners = 3

// Lines are a line for each table, and for the log. The same words may be in thousands of tests.
func Lines(places []Place) (lines []string) {
	counts, of := map[string]int{}, map[string][]string{}
	for _, p := range places {
		counts[p.Where] += p.Count
		of[p.Where] = append(of[p.Where], p.Of)
	}
	for _, where := range slices.Sorted(maps.Keys(counts)) {
		named := ""
		for _, one := range of[where][:min(len(of[where]), owners)] {
			if one != "" {
				named += ", of " + one
			}
		}
		if more := len(of[where]) - owners; more > 0 {
			named += fmt.Sprintf(", and of %d more", more)
		}
		lines = append(lines, fmt.Sprintf("%s%s: %d", where, named, counts[where]))
	}
	return lines
}

// Searched says where the texts of a subject were looked for, and found.
type Searched struct {
	Texts     int     `json:"texts"` // that were looked for
	Tables    int     `json:"tables"`
	Rows      int64   `json:"rows"`      // about as many
	Events    int64   `json:"events"`    // of the subject's stream
	Left      []Place `json:"left"`      // of the subject itself
	InClear   []Place `json:"inClear"`   // of its events that were written before texts were sealed
	Elsewhere []Place `json:"elsewhere"` // the same texts, in data of others
}

// needles are the spellings under which texts may be stored.
type needles struct {
	texts int
	all   []string
}

func newNeedles(texts map[string]bool) needles {
	var n needles
	spellings := map[string]bool{}
	for text := range texts {
		if utf8.RuneCountInString(text) < shortestNeedle {
			continue
		}
		n.texts++
		once := escaped(text)
		for _, s := range []string{
			text, once, escaped(once), url.QueryEscape(text), hex.EncodeToString([]byte(text)), hex.EncodeToString([]byte(once)),
		} {
			spellings[s] = true
		}
	}
	n.all = slices.Sorted(maps.Keys(spellings))
	return n
}

// escaped is the text as it stands within a JSON string.
func escaped(text string) string {
	quoted, _ := domain.EncodeJSON(text) // a string
	return strings.Trim(string(quoted), `"`)
}

func (n needles) in(data []byte) bool {
	for _, s := range n.all {
		if bytes.Contains(data, []byte(s)) {
			return true
		}
	}
	return false
}

// search looks for the texts in every table and in the subject's stream, and changes nothing.
func (n needles) search(ctx context.Context, c *service.Core, stream string, of owner) (Searched, error) {
	out := Searched{Texts: n.texts, Left: []Place{}, InClear: []Place{}, Elsewhere: []Place{}}
	if err := n.tables(ctx, c.DB, of, &out); err != nil {
		return out, err
	}
	return out, n.log(ctx, c, stream, &out)
}

// owner names the owner of a table's row, in words; own: the owner is the subject.
type owner func(table string, row map[string]any) (of string, own bool)

const listTablesSQL = `
SELECT format('%I.%I', n.nspname, c.relname) AS name, GREATEST(c.reltuples, 0)::bigint AS rows
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm')
  AND n.nspname NOT LIKE 'pg\_%'
  AND n.nspname NOT IN ('information_schema', 'eventlog') -- texts are sealed there
ORDER BY 1`

// A row is searched as JSON: numbers, texts, arrays, and bytes in hex.
const searchTableSQL = `
SELECT r.line
FROM (SELECT to_jsonb(t)::text AS line FROM %s t) r
WHERE EXISTS (
    SELECT
    FROM unnest($1::text[]) AS n (needle)
    WHERE position(n.needle in r.line) > 0)
LIMIT 10000`

// tables searches every table of the database. The service may drop an older generation of a
// read model meanwhile: then the search begins anew, with the tables that are there.
func (n needles) tables(ctx context.Context, db *sqlx.DB, of owner, out *Searched) error {
	before := *out
	tables, err := pgpool.List[struct {
		Name string `db:"name"`
		Rows int64  `db:"rows"`
	}](ctx, db, "the tables", listTablesSQL)
	if err != nil {
		return err
	}
	for _, t := range tables {
		out.Tables++
		out.Rows += t.Rows
		if len(n.all) == 0 {
			continue
		}
		lines, err := pgpool.List[string](ctx, db, "table "+t.Name, fmt.Sprintf(searchTableSQL, t.Name), pq.Array(n.all))
		if dropped := (*pq.Error)(nil); errors.As(err, &dropped) && dropped.Code.Name() == "undefined_table" {
			*out = before
			return n.tables(ctx, db, of, out)
		}
		if err != nil {
			return err
		}
		for _, line := range lines {
			var row map[string]any
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				return fmt.Errorf("search table %s: %w", t.Name, err)
			}
			whose, own := of(t.Name, row)
			if own {
				out.Left = add(out.Left, "table "+t.Name, "")
			} else {
				out.Elsewhere = add(out.Elsewhere, "table "+t.Name, whose)
			}
		}
	}
	return nil
}

// log searches the subject's own stream, as it is stored: its clear texts stay there.
func (n needles) log(ctx context.Context, c *service.Core, stream string, out *Searched) error {
	return c.Log.ReadRaw(ctx, stream, func(e eventstore.RawEvent) error {
		out.Events++
		if n.in(e.Data) || n.in(e.Meta) {
			out.InClear = add(out.InClear, "log", e.Stream)
		}
		return nil
	})
}

func add(to []Place, where, of string) []Place {
	for i := range to {
		if to[i].Where == where && to[i].Of == of {
			to[i].Count++
			return to
		}
	}
	return append(to, Place{Where: where, Of: of, Count: 1})
}
