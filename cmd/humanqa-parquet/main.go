// Command humanqa-parquet makes a Parquet file of rows. humanqa runs it where an export asks
// for that format (internal/tabular).
//
// Its input is a line with the columns, and then the rows as newline-delimited JSON. It streams
// them, and ends the file where its input ends.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/parquet-go/parquet-go"

	"humanqa/internal/tabular"
)

func main() {
	if err := write(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rowGroup is how many rows are in memory at a time.
const rowGroup = 10_000

func write(in io.Reader, to io.Writer) error {
	rows := json.NewDecoder(in)
	var columns []tabular.Column
	if err := rows.Decode(&columns); err != nil {
		return fmt.Errorf("read the columns: %w", err)
	}
	out := bufio.NewWriter(to)
	row := reflect.New(rowOf(columns))
	w := parquet.NewWriter(out, parquet.SchemaOf(row.Interface()), parquet.Compression(&parquet.Snappy))
	for n := 1; ; n++ {
		row.Elem().SetZero()
		err := rows.Decode(row.Interface())
		if errors.Is(err, io.EOF) {
			return errors.Join(w.Close(), out.Flush())
		}
		if err == nil {
			err = w.Write(row.Interface())
		}
		if err == nil && n%rowGroup == 0 {
			err = w.Flush()
		}
		if err != nil {
			return fmt.Errorf("write row %d: %w", n, err)
		}
	}
}

// rowOf is a struct of the columns: parquet-go knows types.
func rowOf(columns []tabular.Column) reflect.Type {
	fields := make([]reflect.StructField, len(columns))
	for i, c := range columns {
		of, kind := reflect.TypeFor[*string](), ""
		switch c.Kind {
		case tabular.Number:
			of = reflect.TypeFor[*int64]()
		case tabular.Truth:
			of = reflect.TypeFor[*bool]()
		case tabular.Moment:
			of, kind = reflect.TypeFor[*time.Time](), ",timestamp(millisecond)"
		case tabular.Object:
			of = reflect.TypeFor[*object]()
		case tabular.Text:
		}
		tag := fmt.Sprintf(`json:%q parquet:%q`, c.Name, c.Name+",optional"+kind)
		fields[i] = reflect.StructField{Name: fmt.Sprint("C", i), Type: of, Tag: reflect.StructTag(tag)}
	}
	return reflect.StructOf(fields)
}

// object is an object as a text: Parquet has none.
type object string

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(text []byte) error { //nolint:unparam // the interface has it
	*o = object(text)
	return nil
}
