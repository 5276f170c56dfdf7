package tabular_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"humanqa/internal/tabular"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

var columns = []tabular.Column{
	{Name: "id", Kind: tabular.Text}, {Name: "n", Kind: tabular.Number}, {Name: "ok", Kind: tabular.Truth}, {Name: "at", Kind: tabular.Moment},
}

func TestAnObjectIsTextWhereThereAreNone(t *testing.T) {
	t.Parallel()
	of := []tabular.Column{{Name: "data", Kind: tabular.Object}}
	for format, want := range map[tabular.Format]string{tabular.NDJSON: `{"data":{"a":[1,"x"]}}` + "\n{\"data\":null}\n", tabular.CSV: "data\n\"{\"\"a\"\":[1,\"\"x\"\"]}\"\n\n"} {
		var b bytes.Buffer
		must.NoError(t, format.Write(t.Context(), &b, of, each([]any{json.RawMessage(`{"a":[1,"x"]}`)}, []any{nil})))
		if b.String() != want {
			t.Errorf("%s: got %q, want %q", format, b.String(), want)
		}
	}
}

func each(rows ...[]any) tabular.Rows {
	return func(_ context.Context, write func([]any) error) error {
		for _, row := range rows {
			if err := write(row); err != nil {
				return err
			}
		}
		return nil
	}
}

func written(t *testing.T, f tabular.Format, rows ...[]any) []byte {
	t.Helper()
	process.Build(t, "humanqa-parquet")
	var b bytes.Buffer
	must.NoError(t, f.Write(t.Context(), &b, columns, each(rows...)))
	return b.Bytes()
}

func TestEveryFormatHoldsTheSameRows(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)
	rows := [][]any{{"a, \"b\"\n", int64(-7), true, noon}, {"=1+1", nil, nil, nil}}

	if got, want := string(written(t, tabular.NDJSON, rows...)), `{"id":"a, \"b\"\n","n":-7,"ok":true,"at":"2026-03-01T12:00:00.005Z"}`+"\n"+`{"id":"=1+1","n":null,"ok":null,"at":null}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	cells, err := csv.NewReader(bytes.NewReader(written(t, tabular.CSV, rows...))).ReadAll()
	if err != nil || len(cells) != 3 || cells[1][0] != "a, \"b\"\n" || cells[1][1] != "-7" || cells[1][3] != "2026-03-01T12:00:00.005Z" || cells[2][0] != "'=1+1" || cells[2][1] != "" {
		t.Errorf("got %q, %v", cells, err)
	}
	raw := written(t, tabular.Parquet, rows...)
	type row struct {
		ID *string `parquet:"id,optional"`
		N  *int64  `parquet:"n,optional"`
		OK *bool   `parquet:"ok,optional"`
		At *int64  `parquet:"at,optional,timestamp(millisecond)"`
	}
	read, err := parquet.Read[row](bytes.NewReader(raw), int64(len(raw)))
	if err != nil || len(read) != 2 || *read[0].ID != "a, \"b\"\n" || *read[0].N != -7 || !*read[0].OK || *read[0].At != noon.UnixMilli() ||
		*read[1].ID != "=1+1" || read[1].N != nil || read[1].OK != nil || read[1].At != nil {
		got, _ := json.Marshal(read)
		t.Errorf("got %s, %v", got, err)
	}
}

func TestManyRowsAreWrittenInGroups(t *testing.T) {
	t.Parallel()
	rows := make([][]any, 25_000)
	for i := range rows {
		rows[i] = []any{"x", int64(i), i%2 == 0, nil}
	}
	raw := written(t, tabular.Parquet, rows...)
	f, err := parquet.OpenFile(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || f.NumRows() != int64(len(rows)) || len(f.RowGroups()) != 3 {
		t.Errorf("%d rows in %d groups, %v", f.NumRows(), len(f.RowGroups()), err)
	}
}

// A reader must not take a part for the whole.
func TestAParquetFileThatBreaksOffHasNoEnd(t *testing.T) {
	t.Parallel()
	process.Build(t, "humanqa-parquet")
	broken := errors.New("the rows broke off")
	many := make([][]any, 25_000)
	for i := range many {
		many[i] = []any{"x", int64(i), true, nil}
	}
	for name, c := range map[string]struct {
		rows tabular.Rows
		want string
	}{
		"the rows fail": {func(ctx context.Context, write func([]any) error) error {
			return errors.Join(each(many...)(ctx, write), broken)
		}, broken.Error()},
		"a cell is of another kind": {each([]any{"x", "seven", true, nil}), "humanqa-parquet: exit status 1: write row 1: json: cannot unmarshal"},
	} {
		var b bytes.Buffer
		if err := tabular.Parquet.Write(t.Context(), &b, columns, c.rows); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len())); err == nil {
			t.Errorf("%s: it is a file of %d rows", name, f.NumRows())
		}
	}
	full := errors.New("the disk is full")
	if err := tabular.Parquet.Write(t.Context(), failing{full}, columns, each(many...)); err == nil {
		t.Error("a writer that fails is not told")
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWhatASpreadsheetWouldRunIsText(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"": "", "a=1": "a=1", "=1+1": "'=1+1", "@x": "'@x", "-2+3": "'-2+3", "-5": "'-5", "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0", "\tx": "'\tx", "\r=1": "'\r=1",
		"\n=1": "'\n=1", " =1": "' =1", "\u00a0=1": "'\u00a0=1", "\u200b=1": "'\u200b=1", "＝1": "'＝1", "＠x": "'＠x", "－1": "'－1", "−1": "'−1",
		"x;=1+1": "x;'=1+1", "x,=1": "x,'=1", "x\t@y": "x\t'@y", "x\n+1; -2": "x\n'+1;' -2", "a - b, c": "a - b, c", "well-known; x=1": "well-known; x=1",
		"two\r\nlines,\tand; more": "two\r\nlines,\tand; more", "\r\ntwo": "'\r\ntwo", "two\r\n=1": "two\r'\n=1",
	} {
		if got := tabular.Defused(cell); got != want {
			t.Errorf("%q became %q, want %q", cell, got, want)
		}
	}
}

func TestAParquetFileOfNoRowsIsWhole(t *testing.T) {
	t.Parallel()
	raw := written(t, tabular.Parquet)
	f, err := parquet.OpenFile(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || f.NumRows() != 0 || len(f.Schema().Fields()) != len(columns) {
		t.Errorf("got %v, %v", f, err)
	}
}
