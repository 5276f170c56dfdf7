package pgdev

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lib/pq"
)

// Dump writes Database as pg_dump's custom format, as it was at a snapshot that
// another connection has exported and keeps open.
//
// It is a dump and not a copy of the cluster's files (pg_basebackup). Every later
// major version can read a dump, on any machine. It is a fraction of the size, and
// shares its moment with the other readers of the snapshot.
func (a Address) Dump(ctx context.Context, snapshot string, w io.Writer) error {
	return a.tool(ctx, nil, w, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--snapshot="+snapshot)
}

// Empty drops Database, with its content and its connections, and makes it anew.
func (a Address) Empty(ctx context.Context) error {
	db, err := sql.Open("postgres", a.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("open postgres: %w", err)
	}
	defer func() { _ = db.Close() }() // nothing is pending on it
	for _, statement := range []string{"DROP DATABASE IF EXISTS %s WITH (FORCE)", "CREATE DATABASE %s"} {
		if _, err := db.ExecContext(ctx, fmt.Sprintf(statement, pq.QuoteIdentifier(Database))); err != nil {
			return fmt.Errorf("empty database %s: %w", Database, err)
		}
	}
	return nil
}

// Load fills Database, which must be empty, with the output of Dump: all of it or
// nothing.
func (a Address) Load(ctx context.Context, r io.Reader) error {
	return a.tool(ctx, r, nil, "pg_restore", "--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges")
}

// tool runs a client program of the cluster's own version.
func (a Address) tool(ctx context.Context, in io.Reader, out io.Writer, name string, args ...string) error {
	bin, err := findBinaries(ctx, a.major)
	if err != nil {
		return err
	}
	program := filepath.Join(bin, name)
	if !executable(program) {
		return fmt.Errorf("there is no %s: install PostgreSQL's client programs of version %s", program, a.major)
	}
	cmd := exec.CommandContext(ctx, program, append(args, "--no-password", "--dbname="+a.DSN(Database))...)
	cmd.Env = cleanEnv()
	cmd.Stdin, cmd.Stdout = in, out
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	err = cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", name, ctx.Err())
	}
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		// The first line is the cause; the lines after it follow from it.
		first, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return fmt.Errorf("%s: %w: %s", name, err, first)
	}
	return err
}
