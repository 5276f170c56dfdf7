// Package backup writes an installation with the embedded Postgres into one file, and
// makes a data directory from such a file.
//
// A backup exports one snapshot, and pg_dump and the list of evidence share it.
// Evidence is written before its row and never changed, so its files may be read after
// the snapshot. The file holds a dump and not the cluster's files. So any later major
// version of Postgres reads it, and so does a later version of the service
// (cmd/humanqa/older_test.go).
//
// A restore marks the directory before its first write, and removes the mark after its
// last. Every other command refuses a directory with that mark.
package backup

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

	"humanqa/cmd/humanqa/service"
	"humanqa/eventstore/node/store"
	"humanqa/httpapi/evidence"
	"humanqa/internal/archive"
	"humanqa/internal/blob"
	"humanqa/internal/buildinfo"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/internal/vault"
	"humanqa/migrations"
)

// The entries of a backup.
const (
	databaseEntry = "database.dump"
	keysetEntry   = "master-keyset.json"
	evidenceEntry = "evidence"
)

// Saved is the answer of backup.
type Saved struct {
	File       string   `json:"file"`
	Bytes      int64    `json:"bytes"`
	Events     int64    `json:"events"`
	Keyset     bool     `json:"keyset"`               // it is in the file
	Evidence   int      `json:"evidence"`             // pieces in the file
	EvidenceAt string   `json:"evidenceAt,omitempty"` // the bucket of evidence that is not in the file
	Missing    []string `json:"missing"`              // pieces whose files are lost
}

// EmbeddedOnly restricts backup and restore to the embedded servers. They cannot hold the
// moment of another server's log, nor its roles and settings.
func EmbeddedOnly(cfg service.Config) error {
	switch {
	case cfg.EventStoreURL != "":
		return service.BadSetting("HUMANQA_EVENTSTORE_URL", "names your own log, which this command cannot back up: see docs/operations.md")
	case cfg.DatabaseURL != "":
		return service.BadSetting("HUMANQA_DATABASE_URL", "names your own Postgres: use pg_dump, see docs/operations.md")
	}
	return nil
}

const snapshotSQL = `
SELECT pg_export_snapshot(), now()`

// Write takes everything from one snapshot of the database: every request that was
// answered before it began is in it. The bucket had the evidence of the snapshot before
// it, and never changes it: the files may be read after it. Evidence that is no longer
// kept keeps its file until the backup has ended.
func Write(ctx context.Context, cfg service.Config, from pgdev.Address, file string) (Saved, error) {
	db, err := pgpool.Open(ctx, from.DSN(pgdev.Database))
	if err != nil {
		return Saved{}, err
	}
	defer func() { _ = db.Close() }() // nothing is pending on it
	conn, err := db.Connx(ctx)
	if err != nil {
		return Saved{}, fmt.Errorf("take a snapshot: %w", err)
	}
	defer func() { _ = conn.Close() }() // with the pool, which ends the lock
	if err := evidence.LockFiles(ctx, conn); err != nil {
		return Saved{}, err
	}
	tx, err := conn.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return Saved{}, fmt.Errorf("take a snapshot: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // it only reads

	m := archive.Manifest{By: buildinfo.This().Version}
	var snapshot string
	if err := tx.QueryRowContext(ctx, snapshotSQL).Scan(&snapshot, &m.Made); err != nil {
		return Saved{}, fmt.Errorf("take a snapshot: %w", err)
	}
	m.Made = m.Made.UTC()
	if m.Schema, err = known(ctx, tx); err != nil {
		return Saved{}, err
	}
	if m.Events, err = store.Head(ctx, tx); err != nil { // positions have no holes
		return Saved{}, err
	}
	to, err := archive.Create(file)
	if err != nil {
		return Saved{}, err
	}
	defer to.Abort()
	if err := to.Add(databaseEntry, func(w io.Writer) error { return from.Dump(ctx, snapshot, w) }); err != nil {
		return Saved{}, err
	}
	if err := addKeyset(ctx, tx, to, cfg); err != nil {
		return Saved{}, err
	}
	pieces, err := addEvidence(ctx, tx, to, &m, cfg.EvidenceURL)
	if err != nil {
		return Saved{}, err
	}
	size, err := to.Finish(m)
	return Saved{
		File: file, Bytes: size, Events: m.Events, Keyset: cfg.MasterKeyCommand == "", Evidence: pieces, EvidenceAt: m.EvidenceAt,
		Missing: append([]string{}, m.Missing...),
	}, err
}

// known gives the schema, which may be older than this binary's: a backup comes before an
// upgrade. Of a newer schema this binary does not know all files.
func known(ctx context.Context, tx *sqlx.Tx) (int64, error) {
	newest, err := migrations.Newest()
	if err != nil {
		return 0, err
	}
	schema, err := migrations.Version(ctx, tx)
	if err == nil && schema > newest {
		err = fmt.Errorf("%w: its schema is %d, this binary knows %d: back it up with the newer binary", migrations.ErrNewer, schema, newest)
	}
	return schema, err
}

// addKeyset reads the keyset behind the snapshot. It lacks no key that the snapshot needs,
// unless a rotation was finished in between. A keyset that a program gives is in no file.
func addKeyset(ctx context.Context, tx *sqlx.Tx, to *archive.Writer, cfg service.Config) error {
	keyset, err := vault.ReadKeyset(ctx, cfg.Vault(nil))
	if err == nil {
		_, err = keyset.Fits(ctx, tx)
	}
	if err != nil || cfg.MasterKeyCommand != "" {
		return err
	}
	return to.Add(keysetEntry, func(w io.Writer) error {
		_, err := w.Write(keyset.Text)
		return err
	})
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
	err = evidence.StoredFilesIn(ctx, tx, m.Schema, func(f evidence.StoredFile) error {
		file := filepath.Join(dir, filepath.FromSlash(f.Key))
		if blob.Lost(file, f.Size) {
			m.Missing = append(m.Missing, f.Key)
			return nil
		}
		pieces++
		name := path.Join(evidenceEntry, f.Key)
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
