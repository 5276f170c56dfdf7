// Package migrations is the whole SQL schema, embedded, and the only way to apply it.
// Files are numbered and never change once released: a later change is a later file.
//
// Each file is one transaction. So a crash leaves the schema at the end of some file,
// and the next start continues from there. A session advisory lock lets several
// processes start at once: one migrates, and the others wait and find nothing left to
// do.
//
// From 0070 on a file leaves a running older version its tables: it sets lock_timeout to a
// second, and does nothing under a lock that takes longer (make lint, docs/upgrades.md). A
// file that does not get its lock in that second is undone and tried again.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/lib/pq"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Files are the files, in one folder.
//
//go:embed *.sql
var Files embed.FS

// table records the applied files. It carries our name, so a database shared
// with another goose user stays readable.
const table = "public.humanqa_migrations"

// lockID is this schema's session advisory lock: "humanqam" in ASCII, far away from
// numbers that people choose by hand.
const lockID int64 = 0x68756d616e71616d

// A waiting starter asks for the lock every second for two minutes, longer than
// any file here takes.
const (
	lockPeriod   = 1
	lockAttempts = 120
)

// A file whose table is in use for longer than its lock_timeout is tried again for some
// minutes. The pauses let the users of the table go first.
const (
	lockNotAvailable = "55P03"
	tableAttempts    = 60
	tablePause       = 2 * time.Second
)

// ErrNewer matches, through errors.Is, the refusal of a database that a newer
// binary has migrated: this one would read and write it by rules that no longer
// hold.
var ErrNewer = errors.New("the database belongs to a newer humanqa")

// ErrOlder matches the refusal of a database that has not been migrated yet.
var ErrOlder = errors.New("the database is not up to date")

// Newest is the schema that this binary knows: the number of its last file.
func Newest() (int64, error) {
	names, err := fs.Glob(Files, "*.sql")
	if err != nil || len(names) == 0 {
		return 0, fmt.Errorf("list the migrations: %w", err)
	}
	newest, err := goose.NumericComponent(slices.Max(names))
	if err != nil {
		return 0, fmt.Errorf("read the number of a migration: %w", err)
	}
	return newest, nil
}

const versionTableSQL = `
SELECT to_regclass('` + table + `') IS NOT NULL`

const versionSQL = `
SELECT COALESCE(max(version_id), 0)
FROM ` + table + `
WHERE is_applied`

// Version is the schema that the database has; 0 before the first Up.
func Version(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (version int64, err error) {
	var migrated bool
	err = db.QueryRowContext(ctx, versionTableSQL).Scan(&migrated)
	if err == nil && migrated {
		err = db.QueryRowContext(ctx, versionSQL).Scan(&version)
	}
	if err != nil {
		return 0, fmt.Errorf("read the schema's version: %w", err)
	}
	return version, nil
}

// Check returns ErrNewer or ErrOlder if this binary and the database do not fit together.
// It changes nothing.
func Check(ctx context.Context, db *sql.DB) error {
	newest, err := Newest()
	if err != nil {
		return err
	}
	version, err := Version(ctx, db)
	switch {
	case err != nil:
		return err
	case version > newest:
		return fmt.Errorf("%w: its schema is %d, this binary knows %d: use the newer binary, or a backup from before the upgrade", ErrNewer,
			version, newest)
	case version < newest:
		return fmt.Errorf("%w: its schema is %d, this binary needs %d: start humanqa serve of this version, which migrates it", ErrOlder,
			version, newest)
	}
	return nil
}

// Up brings the database to the newest schema. On a current one it does nothing. It
// refuses a newer one with ErrNewer, also when a newer binary migrated it while this one
// waited for the lock.
func Up(ctx context.Context, db *sql.DB) error {
	if err := Check(ctx, db); err != nil && !errors.Is(err, ErrOlder) {
		return err
	}
	if err := up(ctx, db, Files); err != nil {
		return err
	}
	return Check(ctx, db)
}

// up applies the files that are missing.
func up(ctx context.Context, db *sql.DB, files fs.FS) error {
	locker, err := lock.NewPostgresSessionLocker(
		lock.WithLockID(lockID),
		lock.WithLockTimeout(lockPeriod, lockAttempts),
	)
	if err != nil {
		return fmt.Errorf("prepare the migration lock: %w", err)
	}
	// The provider is not closed: that would close the caller's db.
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(table),
		goose.WithSessionLocker(locker),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	for try := 1; ; try++ {
		_, err := provider.Up(ctx)
		if err == nil {
			return nil
		}
		var refused *pq.Error
		if !errors.As(err, &refused) || refused.Code != lockNotAvailable || try == tableAttempts {
			return fmt.Errorf("migrate: %w", err)
		}
		select {
		case <-time.After(tablePause):
		case <-ctx.Done():
			return fmt.Errorf("migrate: %w", errors.Join(err, ctx.Err()))
		}
	}
}
