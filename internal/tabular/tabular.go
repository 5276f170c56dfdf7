// Package tabular writes rows as newline-delimited JSON, CSV or Parquet. It streams
// them.
package tabular

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
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

// MediaType is the name of the format in HTTP.
func (f Format) MediaType() string {
	switch f {
	case CSV:
		return "text/csv; charset=utf-8"
	case Parquet:
		return "application/vnd.apache.parquet"
	case NDJSON:
	}
	return "application/x-ndjson"
}

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

// Writer takes rows, in the order of the columns. Nothing is whole before Close,
// which leaves the writer below open.
type Writer interface {
	Write(row []any) error
	Close() error
}

// New begins a table.
func New(f Format, w io.Writer, columns []Column) (Writer, error) {
	switch f {
	case NDJSON:
		return &ndjson{w, columns}, nil
	case CSV:
		out := &table{csv.NewWriter(w), make([]string, len(columns))}
		for i, c := range columns {
			out.cells[i] = c.Name
		}
		return out, out.Writer.Write(out.cells)
	case Parquet:
		return newParquet(w, columns), nil
	}
	return nil, fmt.Errorf("there is no format %q: there are %s", f, strings.Join(Formats(), ", "))
}

// when is a time as the API writes it.
const when = "2006-01-02T15:04:05.000Z"

type ndjson struct {
	w       io.Writer
	columns []Column
}

// Write keeps the order of the columns, which a map would not.
func (n *ndjson) Write(row []any) error {
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

func (*ndjson) Close() error { return nil }

type table struct {
	*csv.Writer
	cells []string
}

func (t *table) Write(row []any) error {
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
	return t.Writer.Write(t.cells)
}

func (t *table) Close() error {
	t.Flush()
	return t.Error()
}

// formula matches the start of what a spreadsheet takes for a formula, behind blanks that it
// drops. One that splits at another separator sees a cell behind that, too.
var formula = regexp.MustCompile(`(^|[;,\t\r\n])([\pZ\pC]*[=+@＝＋－＠−-]|[\t\r\n])`)

// Defused puts an apostrophe before a cell that a spreadsheet takes for a formula.
func Defused(cell string) string { return formula.ReplaceAllString(cell, "$1'$2") }

// rowGroup is how many rows of a Parquet file are in memory at a time.
const rowGroup = 10_000

// columnar writes a struct that is made of the columns: parquet-go knows types.
type columnar struct {
	*parquet.Writer
	row     reflect.Value // a pointer to the struct
	pending int
}

func newParquet(w io.Writer, columns []Column) *columnar {
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		tag, of := c.Name+",optional", reflect.TypeFor[*string]()
		switch c.Kind {
		case Number:
			of = reflect.TypeFor[*int64]()
		case Truth:
			of = reflect.TypeFor[*bool]()
		case Moment:
			of, tag = reflect.TypeFor[*int64](), c.Name+",optional,timestamp(millisecond)"
		case Text, Object:
		}
		fields[i] = reflect.StructField{Name: fmt.Sprint("C", i), Type: of, Tag: reflect.StructTag(`parquet:"` + tag + `"`)}
	}
	row := reflect.New(reflect.StructOf(fields))
	return &columnar{Writer: parquet.NewWriter(w, parquet.SchemaOf(row.Interface()), parquet.Compression(&parquet.Snappy)), row: row}
}

func (c *columnar) Write(row []any) error {
	c.row.Elem().SetZero()
	for i, value := range row {
		switch v := value.(type) {
		case time.Time:
			value = v.UnixMilli()
		case json.RawMessage:
			value = string(v)
		}
		if value == nil {
			continue
		}
		field := c.row.Elem().Field(i)
		v := reflect.New(field.Type().Elem())
		v.Elem().Set(reflect.ValueOf(value))
		field.Set(v)
	}
	if err := c.Writer.Write(c.row.Interface()); err != nil {
		return err
	}
	if c.pending++; c.pending < rowGroup {
		return nil
	}
	c.pending = 0
	return c.Flush()
}
