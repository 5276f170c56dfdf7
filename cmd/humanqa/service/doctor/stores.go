package doctor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"humanqa/cmd/humanqa/service"
	"humanqa/eventstore"
	"humanqa/eventstore/binding"
	"humanqa/internal/blob"
	"humanqa/internal/datadir"
	"humanqa/internal/pgclock"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/internal/vault"
	"humanqa/migrations"
)

// data looks at the data directory.
func (e *examination) data(context.Context) []Finding {
	dir := e.cfg.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return note(dir+" is not there", "humanqa serve makes it; if there is data, set HUMANQA_DATA_DIR to its place")
	case err != nil:
		return wrong(err, "run the doctor as the service's user")
	case !info.IsDir():
		return wrong(fmt.Errorf("%s is no directory", dir), "set HUMANQA_DATA_DIR to a directory")
	case info.Mode().Perm()&0o077 != 0:
		return wrong(fmt.Errorf("other users can look into %s (mode %#o)", dir, info.Mode().Perm()), "chmod 700 "+dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return wrong(fmt.Errorf("%s cannot be written to: %w", dir, err), "give it to the service's user (chown), and run the doctor as that user")
	}
	if err := service.RefuseHalfRestored(e.cfg); err != nil {
		return wrong(err, "the line names it")
	}
	return ok("%s", dir)
}

// keys looks at the master keyset, and compares it with the keys that the database needs.
func (e *examination) keys(ctx context.Context) []Finding {
	keyset, err := vault.ReadKeyset(ctx, e.cfg.Vault(nil))
	used := service.HasData(e.cfg)
	if e.db != nil && !used {
		used, _ = vault.HasKeys(ctx, e.db) // without a schema it has none
	}
	const next = "docs/keys.md says where to look for it"
	switch {
	case errors.Is(err, vault.ErrNoKeyset) && !used:
		return note("there is no keyset", "humanqa serve makes it; if there is data, set HUMANQA_MASTER_KEY_FILE to its place")
	case err != nil:
		return wrong(err, next)
	case e.db == nil:
		return note("a keyset is there; without a database it is not compared", "run the doctor again once the database answers")
	}
	wrapping, err := keyset.Fits(ctx, e.db)
	switch {
	case err != nil:
		return wrong(err, next)
	case wrapping > 1:
		return note("the master key is being changed", "humanqa keys rotate, and then the same with --finish")
	}
	return ok("the keyset has every key that the database and the log need")
}

// database looks at Postgres, its schema, and the embedded one's programs.
func (e *examination) database(ctx context.Context) []Finding {
	dsn := cmp.Or(e.cfg.DatabaseDirectURL, e.cfg.DatabaseURL)
	if dsn == "" {
		server, err := pgdev.Running(e.cfg.DataDir)
		switch {
		case errors.Is(err, pgdev.ErrNotRunning):
			bin, err := pgdev.Installed(ctx, e.cfg.DataDir)
			if err != nil {
				return wrong(err, "install PostgreSQL's server programs, or set HUMANQA_DATABASE_URL")
			}
			return note("the embedded Postgres is stopped; its programs are in "+bin, "humanqa serve starts it")
		case err != nil:
			return wrong(err, "run the doctor as the service's user")
		}
		dsn = server.DSN(pgdev.Database)
	}
	db, err := pgpool.Open(ctx, dsn)
	if err != nil {
		return wrong(err, "does Postgres run, and are host, user, password and database in HUMANQA_DATABASE_URL right?")
	}
	e.db = db
	if e.cfg.DatabaseURL != "" {
		if err := pgpool.CheckSessions(ctx, db); err != nil {
			return wrong(err, "set HUMANQA_DATABASE_DIRECT_URL to Postgres itself, or pool_mode = session there")
		}
	}
	var version string
	if err := db.GetContext(ctx, &version, "SHOW server_version"); err != nil {
		return wrong(err, "look into Postgres' log")
	}
	schema, err := migrations.Version(ctx, db)
	if err == nil {
		err = migrations.Check(ctx, db.DB)
	}
	switch {
	case errors.Is(err, migrations.ErrOlder):
		return note(fmt.Sprintf("PostgreSQL %s, schema %d is older than this binary's", version, schema), "humanqa serve migrates it")
	case err != nil:
		return wrong(err, "the line names it")
	}
	found := ok("PostgreSQL %s, schema %d", version, schema)
	if err := pgpool.CheckServer(ctx, db); err != nil {
		found = append(found, wrong(err, service.TurnOn)...)
	}
	if err := service.CheckConnections(ctx, db); err != nil {
		found = append(found, note(err.Error(), service.FewerConnections)...)
	}
	return found
}

// eventlog looks at the log as humanqa eventstore check does, and at its name.
func (e *examination) eventlog(ctx context.Context) []Finding {
	var err error
	if url := e.cfg.EventStoreURL; url != "" {
		e.events, err = eventstore.Open(url, e.log)
	} else {
		socket := service.SocketPath(e.cfg.DataDir)
		if _, gone := os.Stat(socket); gone != nil || e.running == 0 {
			return note("the embedded node is stopped", "humanqa serve starts it")
		}
		e.events, err = eventstore.OpenSocket(socket, eventstore.Patience, e.log)
	}
	if err != nil {
		return wrong(err, "set HUMANQA_EVENTSTORE_URL to an address such as esdb://host:2113")
	}
	var lacks []Finding
	for _, f := range e.events.Inspect(ctx) {
		if !f.OK {
			lacks = append(lacks, wrong(fmt.Errorf("%s: %s", f.What, f.Detail), f.Hint)...)
		}
	}
	if lacks != nil {
		return lacks
	}
	if err := e.events.Writable(ctx); err != nil {
		return wrong(err, "look into the log of the event store")
	}
	if e.db != nil && migrations.Check(ctx, e.db.DB) == nil {
		bound := binding.New(e.db, e.events, time.Now)
		_ = bound.Check(ctx) // an error without a problem means that a part does not answer: that part has its finding
		if strange := bound.Problem(); strange != nil {
			return wrong(errors.New(strange.Message), strange.Hint)
		}
	}
	return ok("it answers, with the rights and limits that the service needs")
}

// clock compares this machine's with Postgres', by which everything is timed.
func (e *examination) clock(ctx context.Context) []Finding {
	if e.db == nil {
		return note("without a database there is nothing to compare it with", "run the doctor again once the database answers")
	}
	clock, err := pgclock.Open(ctx, e.db, e.log, time.Now)
	if err != nil {
		return wrong(err, "look into Postgres' log")
	}
	if problem := clock.Problem(); problem != "" {
		return wrong(errors.New(problem), "run a time service such as chrony on both machines")
	}
	return ok("it agrees with Postgres'")
}

// enough is the space that should be free on a disk for an hour of work: a twentieth of
// it, at most 1 GiB. Below it the service takes no recordings any more.
const enough = 1 << 30

// disk looks at the disk of the data directory, and of the embedded Postgres.
func (e *examination) disk(context.Context) []Finding {
	for _, place := range datadir.Places(e.cfg.DataDir) {
		free, total, err := datadir.Room(place)
		if err != nil {
			return wrong(err, "run the doctor as the service's user")
		}
		if full := room(place, free, total); full != nil {
			return full
		}
	}
	return ok("there is room for the data")
}

// room tells of a disk that is nearly full; nil: it is not.
func room(place string, free, total int64) []Finding {
	if total == 0 || free >= min(enough, total/20) {
		return nil
	}
	return wrong(fmt.Errorf("%s of %s are free at %s", inGiB(free), inGiB(total), place), "make room, or move the data to a larger disk")
}

// evidence writes a file, reads it and removes it.
func (e *examination) evidence(ctx context.Context) []Finding {
	if dir, local := blob.Path(e.cfg.EvidenceURL); local {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return note(dir+" is not there", "humanqa serve makes it")
		}
	}
	const next = "check HUMANQA_EVIDENCE_URL, and that its user may write, read and delete"
	bucket, err := blob.Open(ctx, e.cfg.EvidenceURL)
	if err != nil {
		return wrong(err, next)
	}
	defer func() { _ = bucket.Close() }() // nothing is pending on it
	if err := bucket.Reachable(ctx); err != nil {
		return wrong(err, next)
	}
	if err := probe(ctx, bucket); err != nil {
		return wrong(err, next)
	}
	free, total, err := bucket.Room()
	if err != nil {
		return wrong(err, next)
	}
	if full := room("the evidence", free, total); full != nil {
		return full
	}
	return ok("a file can be written, read and removed")
}

// probe leaves nothing behind, except where this process dies in the middle: then a file
// of a few bytes in the folder doctor, which no job names.
func probe(ctx context.Context, bucket blob.Bucket) (err error) {
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
