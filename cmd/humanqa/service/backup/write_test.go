package backup

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"humanqa/eventstore/node/store"
	"humanqa/httpapi/evidence"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/migrations"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// oldest is the schema of the oldest data directory that is still taken over.
const oldest = 18

// A new binary makes the backup before an upgrade, and it migrates nothing.
func TestABackupReadsEverySchemaThatWasEverReleased(t *testing.T) {
	t.Parallel()
	db := pgtest.NewEmpty(t)
	provider, err := goose.NewProvider(goose.DialectPostgres, db.DB, os.DirFS("../../../../migrations"),
		goose.WithTableName("public.humanqa_migrations"), goose.WithDisableGlobalRegistry(true))
	must.NoError(t, err)
	_, err = provider.UpTo(t.Context(), oldest)
	must.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `
		INSERT INTO http_evidence (id, account_id, job_id, checker_id, digest, content_type, size, begun_at, stored_at)
		VALUES (gen_random_uuid(), 'acc', 'job', 'ann', '', 'image/png', 7, now(), now())`)
	must.NoError(t, err)
	for {
		tx, err := db.BeginTxx(t.Context(), nil)
		must.NoError(t, err)
		schema, err := known(t.Context(), tx)
		must.NoError(t, err)
		pieces := 0
		err = evidence.StoredFilesIn(t.Context(), tx, schema, func(evidence.StoredFile) error { pieces++; return nil })
		if err != nil || pieces != 1 {
			t.Errorf("schema %d: %d pieces of evidence, %v", schema, pieces, err)
		}
		if _, err := store.Head(t.Context(), tx); err != nil {
			t.Errorf("schema %d: %v", schema, err)
		}
		must.NoError(t, tx.Rollback())
		more, err := provider.HasPending(t.Context())
		must.NoError(t, err)
		if !more {
			break
		}
		_, err = provider.UpByOne(t.Context())
		must.NoError(t, err)
	}
	_, err = db.ExecContext(t.Context(), "INSERT INTO public.humanqa_migrations (version_id, is_applied) VALUES (9999, true)")
	must.NoError(t, err)
	tx, err := db.BeginTxx(t.Context(), nil)
	must.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	if _, err := known(t.Context(), tx); !errors.Is(err, migrations.ErrNewer) || !strings.Contains(err.Error(), "back it up with the newer binary") {
		t.Errorf("a newer schema: %v", err)
	}
}
