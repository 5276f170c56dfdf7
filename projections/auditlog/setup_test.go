package auditlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
	"humanqa/internal/vault"
	"humanqa/projections/auditlog"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m))
}

// world is the real log on a real Postgres, its tree, and what signs it.
type world struct {
	t      testing.TB
	db     *sqlx.DB
	log    logtest.Real
	sup    *consumer.Supervisor
	signer *auditlog.Signer
	vault  *vault.Vault
	now    time.Time
	stop   func()
}

func setup(t testing.TB) *world {
	t.Helper()
	return setupOn(t, pgtest.NewDSN(t))
}

// setupOn makes the world of a database that may have a log.
func setupOn(t testing.TB, dsn string) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.NewDB(t, dsn), log: logtest.Start(t, dsn), now: modeltest.Noon}
	var err error
	if w.vault, err = vault.Open(t.Context(), vault.Config{KeyFile: filepath.Join(t.TempDir(), "key"), DB: w.db}); err != nil {
		t.Fatal(err)
	}
	w.log.Authenticate(w.vault.MACKeys)
	w.signer = auditlog.NewSigner(w.db, w.log.Client, w.vault, func() time.Time { return w.now })
	w.run(w.log.Feed)
	return w
}

// run grows the tree until stop is called, or the test ends.
func (w *world) run(source consumer.Source) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	sup := consumer.New(w.db, source, quiet, auditlog.Projector{})
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- sup.Run(ctx) }()
	w.sup, w.stop = sup, sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(w.stop)
}

// restart forgets what the process has in memory of the log.
func (w *world) restart() {
	w.stop()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	w.run(eventstore.NewFeed(w.log.Client, quiet)) // not run: it then reads pages
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
	w.t.Cleanup(cancel)
	return ctx
}

// lives appends n jobs, each with two events.
func (w *world) lives(n int) {
	w.t.Helper()
	for i := range n {
		id := uuid.New()
		_, err := w.log.Append(w.ctx(), domain.JobStream(id.String()), domain.NoStream, []domain.NewEvent{
			{ID: uuid.New(), Event: modeltest.Created("acc", func(e *job.Created) { e.Title = fmt.Sprint("job ", i) }), Meta: domain.Metadata{Time: w.now, Actor: "key:k"}},
			{ID: uuid.New(), Event: modeltest.Claimed("ann"), Meta: domain.Metadata{Time: w.now, Actor: "checker:ann"}},
		})
		must.NoError(w.t, err)
	}
}

// sign waits for the tree and signs it, a minute later than before.
func (w *world) sign() auditlog.Checkpoint {
	w.t.Helper()
	w.grown()
	w.now = w.now.Add(time.Minute)
	c, found, err := w.signer.Sign(w.ctx())
	if err != nil || !found {
		w.t.Fatalf("%v %v", found, err)
	}
	return c
}

func (w *world) grown() {
	w.t.Helper()
	head, err := w.log.Head(w.ctx())
	must.NoError(w.t, err)
	eventually.True(w.t, "the tree holds every event", func() bool {
		all, err := w.sup.Status(w.ctx())
		return err == nil && all[0].Position.Compare(head) >= 0
	})
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	result, err := w.db.ExecContext(w.ctx(), query, args...)
	must.NoError(w.t, err)
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		w.t.Fatalf("%s did nothing: %v", query, err)
	}
}

// event reads what the log's table holds at a position.
type event struct {
	Position, Revision int64
	ID                 string `db:"event_id"`
	Stream, Type       string
}

func (w *world) event(position int64) (e event) {
	w.t.Helper()
	must.NoError(w.t, w.db.GetContext(w.ctx(), &e, `SELECT position, revision, event_id, stream, type FROM eventlog.events WHERE position = $1`, position))
	return e
}

// check holds the log against its tree and checkpoints.
func (w *world) check(kept ...auditlog.Checkpoint) (*auditlog.Check, []auditlog.Finding) {
	w.t.Helper()
	ctx := w.t.Context() // a benchmark's log takes its time
	tx, err := w.db.BeginTxx(ctx, nil)
	must.NoError(w.t, err)
	defer func() { _ = tx.Rollback() }()
	check, err := auditlog.NewCheck(ctx, tx, w.signer, kept)
	must.NoError(w.t, err)
	must.NoError(w.t, auditlog.Each(ctx, w.log.Client, func(e eventstore.RawEvent) error { return check.See(ctx, e) }))
	found, err := check.Findings(ctx)
	must.NoError(w.t, err)
	return check, found
}

// told joins findings, each with its stream.
func told(found []auditlog.Finding) string {
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "[%s] %s\n", f.Stream, f.Problem)
	}
	return b.String()
}

// standalone runs the verifier that shares no code with us.
func (w *world) standalone(file string, kept ...auditlog.Checkpoint) (out string, ok bool) {
	w.t.Helper()
	verifier, err := w.signer.Verifier(w.ctx())
	must.NoError(w.t, err)
	args := []string{verifier, file}
	for i, k := range kept {
		name := filepath.Join(w.t.TempDir(), fmt.Sprint("checkpoint", i))
		must.NoError(w.t, os.WriteFile(name, []byte(k.Note), 0o600))
		args = append(args, name)
	}
	said, err := exec.CommandContext(w.ctx(), process.Build(w.t, "auditverify"), args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		w.t.Fatalf("%v: %s", err, said)
	}
	return string(said), err == nil
}

// export writes the log to a file.
func (w *world) export(upTo auditlog.Checkpoint) string {
	w.t.Helper()
	var b bytes.Buffer
	_, err := auditlog.Export(w.ctx(), w.signer, upTo, &b)
	must.NoError(w.t, err)
	return w.file(b.String())
}

func (w *world) file(text string) string {
	w.t.Helper()
	name := filepath.Join(w.t.TempDir(), "file.json")
	must.NoError(w.t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

func (w *world) read(file string) string {
	w.t.Helper()
	text, err := os.ReadFile(file)
	must.NoError(w.t, err)
	return string(text)
}
