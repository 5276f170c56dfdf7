package pgpool

import (
	"bytes"
	"context"
	"database/sql/driver"

	"github.com/jmoiron/sqlx"
)

// copyChunk is about how many bytes the driver is given at once, which it gathers
// and writes to the connection.
const copyChunk = 60 << 10

// copyText is what the driver passes on to Postgres as it stands.
type copyText string

// Copy runs COPY … FROM STDIN with rows in the text format of COPY, each with its
// line feed (see AppendCopied). Rows that are given to the driver value by value
// cost four times as much here.
func Copy(ctx context.Context, tx *sqlx.Tx, query string, rows []byte) error {
	in, err := tx.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // the end has told what is wrong
	for len(rows) > 0 {
		var chunk []byte
		chunk, rows = cutRows(rows)
		if _, err := in.ExecContext(ctx, copyText(chunk)); err != nil {
			return err
		}
	}
	_, err = in.ExecContext(ctx) // the end
	return err
}

// cutRows gives whole rows, about a chunk of them, without the last line feed: the
// driver adds it.
func cutRows(rows []byte) (chunk, rest []byte) {
	from := min(len(rows), copyChunk)
	if end := bytes.LastIndexByte(rows[:from], '\n'); end >= 0 {
		return rows[:end], rows[end+1:]
	}
	if end := bytes.IndexByte(rows[from:], '\n'); end >= 0 {
		return rows[:from+end], rows[from+end+1:]
	}
	return rows, nil
}

// AppendCopied adds a text to a row for Copy.
func AppendCopied(row []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; c {
		case '\\':
			row = append(row, `\\`...)
		case '\n':
			row = append(row, `\n`...)
		case '\r':
			row = append(row, `\r`...)
		case '\t':
			row = append(row, `\t`...)
		default:
			row = append(row, c)
		}
	}
	return row
}

// copying is a COPY that is under way: it also takes copyText.
type copying struct {
	copier

	conn driver.NamedValueChecker
}

// copier is what the driver's COPY can do.
type copier interface {
	driver.Stmt
	CopyData(ctx context.Context, line string) (driver.Result, error)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	made, err := c.pqConn.PrepareContext(ctx, query)
	if in, ok := made.(copier); ok && err == nil {
		return copying{in, c.pqConn}, nil
	}
	return made, err
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c copying) CheckNamedValue(v *driver.NamedValue) error {
	if _, ok := v.Value.(copyText); ok {
		return nil
	}
	return c.conn.CheckNamedValue(v)
}

// ExecContext implements driver.StmtExecContext.
func (c copying) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 1 {
		if text, ok := args[0].Value.(copyText); ok {
			return c.CopyData(ctx, string(text))
		}
	}
	values := make([]driver.Value, len(args))
	for i, arg := range args {
		values[i] = arg.Value
	}
	return c.Exec(values)
}
