package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"humanqa/eventstore"
	"humanqa/eventstore/binding"
	"humanqa/internal/blob"
	"humanqa/internal/datadir"
	"humanqa/internal/pgclock"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/internal/service"
	"humanqa/migrations"
)

// data looks at the data directory and the master keyset.
func (e *examination) data(context.Context) {
	const part = "data"
	dir := e.cfg.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.note(part, dir+" is not there", "humanqa serve makes it; if there is data, set HUMANQA_DATA_DIR to its place")
		return
	case err != nil:
		e.wrong(part, err, "run the doctor as the service's user")
		return
	case !info.IsDir():
		e.wrong(part, fmt.Errorf("%s is no directory", dir), "set HUMANQA_DATA_DIR to a directory")
		return
	case info.Mode().Perm()&0o077 != 0:
		e.wrong(part, fmt.Errorf("other users can look into %s (mode %#o)", dir, info.Mode().Perm()), "chmod 700 "+dir)
		return
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		e.wrong(part, fmt.Errorf("%s cannot be written to: %w", dir, err), "give it to the service's user (chown), and run the doctor as that user")
		return
	}
	if err := service.RefuseHalfRestored(e.cfg); err != nil {
		e.wrong(part, err, "the line names it")
		return
	}
	if _, err := os.Stat(e.cfg.MasterKeyFile); err != nil && (service.HasData(e.cfg) || !errors.Is(err, fs.ErrNotExist)) {
		e.wrong(part, fmt.Errorf("the master keyset: %w", err),
			"bring HUMANQA_MASTER_KEY_FILE back from a backup: without it no secret can be opened")
		return
	}
	e.ok(part, "%s", dir)
}

// database looks at Postgres, its schema, and the embedded one's programs.
func (e *examination) database(ctx context.Context) {
	const part = "database"
	dsn := e.cfg.DatabaseURL
	if dsn == "" {
		server, err := pgdev.Running(e.cfg.DataDir)
		switch {
		case errors.Is(err, pgdev.ErrNotRunning):
			bin, err := pgdev.Installed(ctx, e.cfg.DataDir)
			if err != nil {
				e.wrong(part, err, "install PostgreSQL's server programs, or set HUMANQA_DATABASE_URL")
				return
			}
			e.note(part, "the embedded Postgres is stopped; its programs are in "+bin, "humanqa serve starts it")
			return
		case err != nil:
			e.wrong(part, err, "run the doctor as the service's user")
			return
		}
		dsn = server.DSN(pgdev.Database)
	}
	db, err := pgpool.Open(ctx, dsn)
	if err != nil {
		e.wrong(part, err, "does Postgres run, and are host, user, password and database in HUMANQA_DATABASE_URL right?")
		return
	}
	e.db = db
	var version string
	if err := db.GetContext(ctx, &version, "SHOW server_version"); err != nil {
		e.wrong(part, err, "look into Postgres' log")
		return
	}
	schema, err := migrations.Version(ctx, db)
	if err == nil {
		err = migrations.Check(ctx, db.DB)
	}
	switch {
	case errors.Is(err, migrations.ErrOlder):
		e.note(part, fmt.Sprintf("PostgreSQL %s, schema %d is older than this binary's", version, schema), "humanqa serve migrates it")
	case err != nil:
		e.wrong(part, err, "the line names it")
	default:
		e.ok(part, "PostgreSQL %s, schema %d", version, schema)
	}
}

// eventlog looks at the log as humanqa eventstore check does, and at its name.
func (e *examination) eventlog(ctx context.Context) {
	const part = "log"
	var err error
	if url := e.cfg.EventStoreURL; url != "" {
		e.events, err = eventstore.Open(url, e.log)
	} else {
		socket := service.SocketPath(e.cfg.DataDir)
		if _, gone := os.Stat(socket); gone != nil || e.running == 0 {
			e.note(part, "the embedded node is stopped", "humanqa serve starts it")
			return
		}
		e.events, err = eventstore.OpenSocket(socket, e.log)
	}
	if err != nil {
		e.wrong(part, err, "set HUMANQA_EVENTSTORE_URL to an address such as esdb://host:2113")
		return
	}
	whole := true
	for _, f := range e.events.Inspect(ctx) {
		if !f.OK {
			whole = false
			e.wrong(part, fmt.Errorf("%s: %s", f.What, f.Detail), f.Hint)
		}
	}
	if !whole {
		return
	}
	if err := e.events.Writable(ctx); err != nil {
		e.wrong(part, err, "look into the log of the event store")
		return
	}
	if e.db != nil && migrations.Check(ctx, e.db.DB) == nil {
		bound := binding.New(e.db, e.events, time.Now)
		_ = bound.Check(ctx) // an error without a problem is a part that does not answer, which has its finding
		if strange := bound.Problem(); strange != nil {
			e.wrong(part, errors.New(strange.Message), strange.Hint)
			return
		}
	}
	e.ok(part, "it answers, with the rights and limits that the service needs")
}

// clock compares this machine's with Postgres', by which everything is timed.
func (e *examination) clock(ctx context.Context) {
	const part = "clock"
	if e.db == nil {
		e.note(part, "without a database there is nothing to compare it with", "run the doctor again once the database answers")
		return
	}
	clock, err := pgclock.Open(ctx, e.db, e.log, time.Now)
	if err != nil {
		e.wrong(part, err, "look into Postgres' log")
		return
	}
	if problem := clock.Problem(); problem != "" {
		e.wrong(part, errors.New(problem), "run a time service such as chrony on both machines")
		return
	}
	e.ok(part, "it agrees with Postgres'")
}

// enough is what an hour of work should find free of a disk: a twentieth of it, at most
// 1 GiB. Below it the service takes no recordings any more.
const enough = 1 << 30

// disk looks at the disk of the data directory, and of the embedded Postgres.
func (e *examination) disk(context.Context) {
	const part = "disk"
	for _, place := range datadir.Places(e.cfg.DataDir) {
		free, total, err := datadir.Room(place)
		if err != nil {
			e.wrong(part, err, "run the doctor as the service's user")
			return
		}
		if !e.room(part, place, free, total) {
			return
		}
	}
	e.ok(part, "there is room for the data")
}

// room tells where a disk is nearly full.
func (e *examination) room(part, place string, free, total int64) bool {
	if total == 0 || free >= min(enough, total/20) {
		return true
	}
	e.wrong(part, fmt.Errorf("%s of %s are free at %s", inGiB(free), inGiB(total), place), "make room, or move the data to a larger disk")
	return false
}

// evidence writes a file, reads it and removes it.
func (e *examination) evidence(ctx context.Context) {
	const part = "evidence"
	if dir, local := blob.Path(e.cfg.EvidenceURL); local {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			e.note(part, dir+" is not there", "humanqa serve makes it")
			return
		}
	}
	const next = "check HUMANQA_EVIDENCE_URL, and that its user may write, read and delete"
	bucket, err := blob.Open(ctx, e.cfg.EvidenceURL)
	if err != nil {
		e.wrong(part, err, next)
		return
	}
	defer func() { _ = bucket.Close() }() // nothing is pending on it
	if err := bucket.Reachable(ctx); err != nil {
		e.wrong(part, err, next)
		return
	}
	if err := probe(ctx, bucket); err != nil {
		e.wrong(part, err, next)
		return
	}
	free, total, err := bucket.Room()
	if err != nil {
		e.wrong(part, err, next)
		return
	}
	if e.room(part, "the evidence", free, total) {
		e.ok(part, "a file can be written, read and removed")
	}
}

// probe leaves nothing behind, except where this process dies in the middle: then a file
// of a few bytes in the folder doctor, which no job names.
func probe(ctx context.Context, bucket *blob.Bucket) (err error) {
	key, content := "doctor/"+uuid.NewString(), []byte("humanqa doctor")
	if err := bucket.Write(ctx, key, "text/plain", nil, bytes.NewReader(content)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bucket.Delete(ctx, key)) }()
	r, err := bucket.Read(ctx, key, 0, int64(len(content)))
	if err != nil {
		return err
	}
	got, err := io.ReadAll(r)
	if err == nil && !bytes.Equal(got, content) {
		err = errors.New("the file that was written reads otherwise")
	}
	return errors.Join(err, r.Close())
}
