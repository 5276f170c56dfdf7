package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/eventstore/node"
	"humanqa/httpapi"
	"humanqa/internal/archive"
	"humanqa/internal/blob"
	"humanqa/internal/datadir"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/migrations"
)

// What is where in a backup.
const (
	backupDatabase = "database.dump"
	backupKeyset   = "master-keyset.json"
	backupEvidence = "evidence"
)

type backupCmd struct {
	File string `arg:"" type:"path" help:"The file to write; it must not exist."`
}

// saved is what backup answers.
type saved struct {
	File       string   `json:"file"`
	Bytes      int64    `json:"bytes"`
	Events     int64    `json:"events"`
	Evidence   int      `json:"evidence"`             // pieces in the file
	EvidenceAt string   `json:"evidenceAt,omitempty"` // where they are that are not in it
	Missing    []string `json:"missing"`              // pieces whose files are lost
}

// Run needs the embedded Postgres and nothing else of the service: neither its
// schema nor its log has to be one that this binary knows, so that the backup
// before an upgrade can be the new binary's.
func (c *backupCmd) Run(ctx context.Context, a *app) (err error) {
	if err := embeddedOnly(a.cfg); err != nil {
		return err
	}
	server, err := openPostgres(ctx, a.cfg, quiet(a.log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stops.run(ctx)) }()
	made, err := backup(ctx, a.cfg, server.Address, c.File)
	if err != nil {
		return err
	}
	for _, piece := range made.Missing {
		a.log.Warnf("the file of evidence %s is lost: the backup is without it", piece)
	}
	where := fmt.Sprintf("%d pieces of evidence", made.Evidence)
	if made.EvidenceAt != "" {
		where = "no evidence: that is in " + made.EvidenceAt
	}
	return a.print(made, "%s: %d events, the keyset, %s, %d bytes\nWho has this file can read every secret in it.",
		made.File, made.Events, where, made.Bytes)
}

// embeddedOnly keeps backup and restore to what they can hold together: the
// moment of another server's log, or its roles and settings, they cannot.
func embeddedOnly(cfg Config) error {
	switch {
	case cfg.EventStoreURL != "":
		return badSetting("HUMANQA_EVENTSTORE_URL", "names a log of yours, which this command cannot back up: see Backups in README.md")
	case cfg.DatabaseURL != "":
		return badSetting("HUMANQA_DATABASE_URL", "names a Postgres of yours: use pg_dump, see Backups in README.md")
	}
	return nil
}

// postgres is the embedded server, which this process runs only if nobody else
// does.
type postgres struct {
	pgdev.Address

	stops stops
}

func openPostgres(ctx context.Context, cfg Config, log logrus.FieldLogger) (*postgres, error) {
	return joinOrStart(ctx, cfg,
		func() (*postgres, error) {
			address, err := pgdev.Running(cfg.DataDir)
			return &postgres{Address: address}, err
		},
		func() (*postgres, error) {
			release, err := datadir.Lock(cfg.DataDir)
			if err != nil {
				return nil, err
			}
			if err := wholeRestore(cfg); err != nil {
				release()
				return nil, err
			}
			return startPostgres(ctx, cfg, log, release)
		})
}

// startPostgres is for who has the data directory, which is released with it.
func startPostgres(ctx context.Context, cfg Config, log logrus.FieldLogger, release func()) (*postgres, error) {
	p := &postgres{}
	p.stops.add("data directory", closing, func(context.Context) error { release(); return nil })
	server, err := pgdev.Start(ctx, pgdev.Config{Dir: cfg.DataDir, Log: log.WithField("part", "postgres")})
	if err != nil {
		return nil, errors.Join(err, p.stops.run(ctx))
	}
	p.stops.add("postgres", postgresStop, server.Stop)
	p.Address = server.Address
	return p, nil
}

const snapshotSQL = `
SELECT pg_export_snapshot(), now()`

// backup takes everything from one snapshot of the database: what was answered
// before it began is in it. Evidence that the snapshot knows is in the bucket
// since before it, and is never changed: the files may be read after it.
func backup(ctx context.Context, cfg Config, from pgdev.Address, file string) (saved, error) {
	db, err := pgpool.Open(ctx, from.DSN(pgdev.Database))
	if err != nil {
		return saved{}, err
	}
	defer func() { _ = db.Close() }() // nothing is pending on it
	tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return saved{}, fmt.Errorf("take a snapshot: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads

	m := archive.Manifest{By: thisBuild().Version}
	var snapshot string
	if err := tx.QueryRowContext(ctx, snapshotSQL).Scan(&snapshot, &m.Made); err != nil {
		return saved{}, fmt.Errorf("take a snapshot: %w", err)
	}
	m.Made = m.Made.UTC()
	if m.Schema, err = migrations.Version(ctx, tx); err != nil {
		return saved{}, err
	}
	if m.Events, _, err = node.Head(ctx, tx); err != nil { // positions have no holes
		return saved{}, err
	}
	to, err := archive.Create(file)
	if err != nil {
		return saved{}, err
	}
	defer to.Abort()
	if err := to.Add(backupDatabase, func(w io.Writer) error { return from.Dump(ctx, snapshot, w) }); err != nil {
		return saved{}, err
	}
	if err := addFile(to, backupKeyset, cfg.MasterKeyFile); err != nil {
		return saved{}, err
	}
	pieces, err := addEvidence(ctx, tx, to, &m, cfg.EvidenceURL)
	if err != nil {
		return saved{}, err
	}
	size, err := to.Finish(m)
	return saved{
		File: file, Bytes: size, Events: m.Events, Evidence: pieces, EvidenceAt: m.EvidenceAt,
		Missing: append([]string{}, m.Missing...),
	}, err
}

func addFile(to *archive.Writer, name, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("back %s up: %w", name, err)
	}
	defer func() { _ = f.Close() }() // it is only read
	return to.Add(name, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// addEvidence copies a directory's files as they are. A bucket elsewhere has
// backups of its own. A file that the disk has lost does not cost the rest.
func addEvidence(ctx context.Context, tx *sqlx.Tx, to *archive.Writer, m *archive.Manifest, bucket string) (pieces int, err error) {
	dir, ok := blob.Path(bucket)
	if !ok {
		m.EvidenceAt = bucket
		return 0, nil
	}
	err = httpapi.StoredEvidence(ctx, tx, func(_, key string, size int64) error {
		file := filepath.Join(dir, filepath.FromSlash(key))
		if lost(file, size) {
			m.Missing = append(m.Missing, key)
			return nil
		}
		pieces++
		name := path.Join(backupEvidence, key)
		if err := addFile(to, name, file); err != nil {
			return err
		}
		err := addFile(to, blob.Attributes(name), blob.Attributes(file))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // it was never written
		}
		return err
	})
	return pieces, err
}

// lost says that a piece of evidence is not in its directory, or not whole.
func lost(file string, size int64) bool {
	info, err := os.Stat(file)
	return err != nil || info.Size() != size
}
