// Package migrations is the whole SQL schema, embedded, and the one way to
// apply it. Files are numbered and never change once released: a later change
// is a later file.
//
// Each file is one transaction, so a crash leaves the schema at the end of some
// file, and the next start goes on from there. A session advisory lock lets
// several processes start at once: one migrates, the others wait for it and
// find nothing left to do.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed *.sql
var files embed.FS

// table records the applied files. It carries our name, so a database shared
// with another goose user stays readable.
const table = "public.humanqa_migrations"

// lockID is this schema's session advisory lock: "humanqam" in ASCII, far away
// from the numbers people pick by hand.
const lockID int64 = 0x68756d616e71616d

// A waiting starter asks for the lock every second for two minutes, longer than
// any file here takes.
const (
	lockPeriod   = 1
	lockAttempts = 120
)

// Up brings the database to the newest schema; on a current one it does nothing.
func Up(ctx context.Context, db *sql.DB) error {
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
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}
