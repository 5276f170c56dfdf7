// Package tabular writes rows as newline-delimited JSON, CSV or Parquet. It streams
// them.
package tabular

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Format is how rows are written.
type Format string

// The formats.
const (
	NDJSON  Format = "ndjson"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Formats lists them.
func Formats() []string { return []string{string(NDJSON), string(CSV), string(Parquet)} }

var mediaTypes = map[Format]string{
	NDJSON: "application/x-ndjson", CSV: "text/csv; charset=utf-8", Parquet: "application/vnd.apache.parquet",
}

// MediaType is the name of the format in HTTP.
func (f Format) MediaType() string { return mediaTypes[f] }

// Kind is the kind of a column's values. Any value may be nil.
type Kind int

// The kinds, and the Go type of a value.
const (
	Text   Kind = iota // string
	Number             // int64
	Truth              // bool
	Moment             // time.Time
	Object             // json.RawMessage: text where the format knows no objects
)

// Column is one of a table's.
type Column struct {
	Name string
	Kind Kind
}

// Rows gives each row to a function, its cells in the order of the columns, and ends with
// that function's first error.
type Rows func(ctx context.Context, each func(row []any) error) error

// Write writes a table. After an error what was written is a part, and is not read as a whole.
func (f Format) Write(ctx context.Context, w io.Writer, columns []Column, rows Rows) error {
	switch f {
	case NDJSON:
		return rows(ctx, (&ndjson{w, columns}).write)
	case CSV:
		out := &table{csv.NewWriter(w), make([]string, len(columns))}
		for i, c := range columns {
			out.cells[i] = c.Name
		}
		err := out.Write(out.cells)
		if err == nil {
			err = rows(ctx, out.write)
		}
		out.Flush()
		return errors.Join(err, out.Error())
	case Parquet:
		return throughProgram(ctx, w, columns, rows)
	}
	return fmt.Errorf("there is no format %q: there are %s", f, strings.Join(Formats(), ", "))
}

// when is a time as the API writes it.
const when = "2006-01-02T15:04:05.000Z"

type ndjson struct {
	w       io.Writer
	columns []Column
}

// write keeps the order of the columns, which a map would not.
func (n *ndjson) write(row []any) error {
	var b strings.Builder
	b.WriteByte('{')
	for i, c := range n.columns {
		value := row[i]
		if at, ok := value.(time.Time); ok {
			value = at.UTC().Format(when)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("write %s: %w", c.Name, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(c.Name) + ":")
		b.Write(text)
	}
	b.WriteString("}\n")
	_, err := io.WriteString(n.w, b.String())
	return err
}

type table struct {
	*csv.Writer
	cells []string
}

func (t *table) write(row []any) error {
	for i, value := range row {
		switch v := value.(type) {
		case nil:
			t.cells[i] = ""
		case string:
			t.cells[i] = Defused(v)
		case json.RawMessage:
			t.cells[i] = string(v) // it begins with a bracket, and stays JSON
		case time.Time:
			t.cells[i] = v.UTC().Format(when)
		default:
			t.cells[i] = fmt.Sprint(v)
		}
	}
	return t.Write(t.cells)
}

// formula matches the start of what a spreadsheet takes for a formula, behind blanks that it
// drops. One that splits at another separator sees a cell behind that, too.
var formula = regexp.MustCompile(`(^|[;,\t\r\n])([\pZ\pC]*[=+@＝＋－＠−-])|^([\t\r\n])`)

// Defused puts an apostrophe before a cell that a spreadsheet takes for a formula.
func Defused(cell string) string { return formula.ReplaceAllString(cell, "$1'$2$3") }
