package migrations_test

import (
	"os"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/pressly/goose/v3"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/migrations"
)

// before gives a database as the files up to a number have left it.
func before(t *testing.T, number int64) *sqlx.DB {
	t.Helper()
	db := pgtest.NewEmpty(t)
	provider, err := goose.NewProvider(goose.DialectPostgres, db.DB, os.DirFS("."),
		goose.WithTableName("public.humanqa_migrations"), goose.WithDisableGlobalRegistry(true))
	must.NoError(t, err)
	_, err = provider.UpTo(t.Context(), number-1)
	must.NoError(t, err)
	return db
}

// A subscriber that stood at an event stands there still, under the projections'
// runner, and what an operator skipped stays on record.
func TestTheWebhookSubscribersCheckpointIsCarriedOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		old  string // the old row's columns
		want string
	}{
		"live": {
			"started = true, commit_position = 41, prepare_position = 40, events = 7",
			"webhooks live t 41/40 7 - -",
		},
		"stopped": {
			`started = true, commit_position = 41, prepare_position = 40, events = 7, status = 'stopped', failure_category = 'payload',
			failure_detail = 'no head', failure_stream = 'job-1', failure_type = 'job.claimed', failure_commit = 42, failure_prepare = 42, failure_attempts = 3`,
			"webhooks live t 41/40 7 - -", // what it stopped at it sets aside
		},
		"stopped at the first event": {
			"status = 'stopped', failure_category = 'decode', failure_detail = 'd', failure_stream = 's', failure_type = 't', failure_attempts = 1",
			"webhooks live t -1/-1 0 - -",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := before(t, 12)
			_, err := db.ExecContext(t.Context(), "UPDATE webhooks.checkpoint SET owner = gen_random_uuid(), lease_until = now() + interval '1 hour', "+test.old)
			must.NoError(t, err)
			for range 2 { // the same event may have been skipped twice
				_, err := db.ExecContext(t.Context(), `INSERT INTO webhooks.skips (commit_position, prepare_position, stream, type, detail, actor, reason)
					VALUES (9, 8, 'job-2', 'job.rated', 'bad', 'ann', 'a test')`)
				must.NoError(t, err)
			}
			must.NoError(t, migrations.Up(t.Context(), db.DB))
			var got []string
			err = db.SelectContext(t.Context(), &got, `SELECT concat_ws(' ', schema_name, status, serving, commit_position || '/' || prepare_position, applied,
				CASE WHEN status = 'stopped' THEN failure_commit || '/' || failure_prepare || 'x' || failure_attempts ELSE '-' END,
				CASE WHEN status = 'stopped' THEN failure_detail ELSE '-' END)
				FROM projection_checkpoints WHERE name = 'webhooks' AND owner IS NULL AND lease_until IS NULL`)
			if err != nil || len(got) != 1 || got[0] != test.want {
				t.Errorf("the checkpoint is %q, %v, want %q", got, err, test.want)
			}
			got = nil
			err = db.SelectContext(t.Context(), &got, `SELECT name || ' ' || commit_position || '/' || prepare_position || ' ' || detail || ' ' || who || ': ' || why FROM projection_skips`)
			if err != nil || len(got) != 1 || got[0] != "webhooks 9/8 job.rated in job-2: bad ann: a test" {
				t.Errorf("the skips are %q, %v", got, err)
			}
		})
	}
}

// What an older binary stopped at is set aside, or stops the line again: so it is tried.
func TestALineThatAnOlderBinaryStoppedGoesOn(t *testing.T) {
	t.Parallel()
	db := before(t, 43)
	_, err := db.ExecContext(t.Context(), `INSERT INTO projection_checkpoints
			(name, generation, version, schema_name, status, serving, commit_position, prepare_position, failure_category, failure_commit, failure_prepare, failure_detail, failure_attempts)
		VALUES ('jobs', 1, 5, 'jobs_v5_g1', 'stopped', TRUE, 8, 8, 'data', 9, 9, 'a NUL', 4),
			('jobs', 2, 6, 'jobs_v6_g2', 'stopped', FALSE, 8, 8, 'data', 9, 9, 'a NUL', 1),
			('jobs', 3, 6, 'jobs_v6_g3', 'retired', FALSE, 8, 8, NULL, NULL, NULL, NULL, 0)`)
	must.NoError(t, err)
	must.NoError(t, migrations.Up(t.Context(), db.DB))
	var got []string
	err = db.SelectContext(t.Context(), &got, "SELECT concat_ws(' ', schema_name, status, commit_position) FROM projection_checkpoints ORDER BY generation")
	if want := []string{"jobs_v5_g1 live 8", "jobs_v6_g2 building 8", "jobs_v6_g3 retired 8"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the checkpoints are %q, %v, want %q", got, err, want)
	}
}

// A fresh database has nothing to carry over: the first start makes the row.
func TestASubscriberThatNeverReadLeavesNoCheckpoint(t *testing.T) {
	t.Parallel()
	db := before(t, 12)
	must.NoError(t, migrations.Up(t.Context(), db.DB))
	var n int
	if err := db.GetContext(t.Context(), &n, "SELECT count(*) FROM projection_checkpoints"); err != nil || n != 0 {
		t.Errorf("%d checkpoints, %v", n, err)
	}
}

// What an older binary was sending when it was replaced is in the log of attempts as
// lost, and is sent again once its lease has ended.
func TestADeliveryThatWasLeasedIsCarriedOver(t *testing.T) {
	t.Parallel()
	db := before(t, 34)
	for _, query := range []string{
		`INSERT INTO webhooks.endpoints (project_id, account_id, url, secret, due_at) VALUES ('p', 'a', 'https://qa.example', 's', now())`,
		`INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state, attempts, lease_id, due_at)
			SELECT gen_random_uuid(), 'p', gen_random_uuid(), 'job.created', 'job-' || n, 0, '', 'pending', n, CASE n WHEN 2 THEN gen_random_uuid() END, now()
			FROM generate_series(0, 2) n`,
	} {
		_, err := db.ExecContext(t.Context(), query)
		must.NoError(t, err)
	}
	must.NoError(t, migrations.Up(t.Context(), db.DB))
	var got []string
	err := db.SelectContext(t.Context(), &got, `SELECT concat_ws(' ', d.ordering_key, d.attempts, a.attempt, a.error) FROM webhooks.attempts a JOIN webhooks.deliveries d ON d.id = a.delivery_id`)
	if err != nil || len(got) != 1 || got[0] != "job-2 2 2 the outcome is unknown: the sender went away" {
		t.Errorf("the attempts are %q, %v", got, err)
	}
	var free bool
	if err := db.GetContext(t.Context(), &free, "SELECT lease_id IS NULL AND in_flight = '{}' FROM webhooks.endpoints"); err != nil || !free {
		t.Errorf("the endpoint is free: %v, %v", free, err)
	}
}

// The ciphertexts name the keys: of accounts, of subjects, and of the proof.
func TestTheMasterKeysOfAnOlderDatabaseAreKnown(t *testing.T) {
	t.Parallel()
	db := before(t, 81)
	_, err := db.ExecContext(t.Context(), `
		INSERT INTO vault.master_proof (proof) VALUES ('\x0100000001ff');
		INSERT INTO vault.data_keys (account_id, wrapped, fingerprint) VALUES
			('a', '\x128d010100000001ff', '\x128d010100000001ff'), ('b', '\x128d010100000002ff', '\x128d010100000002ff');
		INSERT INTO vault.data_keys (account_id, shredded_at) VALUES ('gone', now());
		INSERT INTO vault.subject_keys (subject, account_id, wrapped, destroyed_at) VALUES
			('job-1', 'a', '\x0100000003ff', NULL), ('job-2', 'a', '\x0100000002ff', NULL), ('job-3', 'a', NULL, now())`)
	must.NoError(t, err)
	must.NoError(t, migrations.Up(t.Context(), db.DB))
	var known []string
	must.NoError(t, db.SelectContext(t.Context(), &known, "SELECT encode(key_id, 'hex') FROM vault.master_keys WHERE wraps ORDER BY 1"))
	if want := []string{"00000001", "00000002", "00000003"}; !slices.Equal(known, want) {
		t.Errorf("the master keys are %v, want %v", known, want)
	}
}
