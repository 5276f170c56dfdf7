package consumer_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/access"
	"humanqa/projections/jobs"
)

// aside is a world whose read model access goes on without the stream of one account,
// which issued the key of another.
type aside struct {
	*world
	stream string
	bad    domain.Position
}

func setupAside(t *testing.T) aside {
	t.Helper()
	w := setup(t)
	a := aside{world: w, stream: domain.AccountStream("acc")}
	w.Log.Record(domain.AccountStream("other"), &account.Created{Name: "forge"}, modeltest.Issued(1))
	w.Log.Record(a.stream, &account.Created{Name: "shop"}, modeltest.Issued(2))
	a.bad = w.Log.Record(a.stream, modeltest.Issued(1))
	w.Log.Record(a.stream, modeltest.Issued(3))
	w.Log.Record(domain.AccountStream("other"), modeltest.Issued(4))
	w.Run(w.Sup)
	w.Reach(w.Sup) // whoever waits is not held up
	return a
}

// keys are those of the account that the read model shows.
func (w *world) keys(accountID string) (ids []string) {
	w.T.Helper()
	must.NoError(w.T, w.DB.SelectContext(w.Ctx(), &ids, "SELECT key_id FROM readmodel.api_keys WHERE account_id = $1 ORDER BY key_id", accountID))
	return ids
}

// shows expects the keys of both accounts.
func (a aside) shows(own, others string) {
	a.T.Helper()
	if got := fmt.Sprint(a.keys("acc"), a.keys("other")); got != own+" "+others {
		a.T.Errorf("the keys are %s, want %s %s", got, own, others)
	}
}

func (w *world) asideOf(name string) []consumer.SetAside {
	w.T.Helper()
	return w.Status(name).SetAside
}

func TestAnEventThatCannotBeAppliedIsSetAsideWithItsStream(t *testing.T) {
	t.Parallel()
	a := setupAside(t)
	a.shows("[k2]", "[k1 k4]")
	a.Eventually("access is live", func() bool { return a.Status("access").State == generation.Live })
	s := a.Status("access")
	if s.State != generation.Live || s.Failure != nil || s.Problem() != "" || len(s.SetAside) != 1 {
		t.Fatalf("got %+v", s)
	}
	got := s.SetAside[0]
	if got.At.IsZero() || got.Due.Sub(got.At).Round(time.Second) != time.Hour || !strings.Contains(got.Detail, "duplicate key") {
		t.Errorf("got %+v", got)
	}
	got.At, got.Due, got.Detail = time.Time{}, time.Time{}, ""
	if want := (consumer.SetAside{
		Stream: "account-acc", Revision: 2, Position: a.bad, Type: "account.key_issued", Category: generation.CategoryConstraint, Attempts: 1,
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if notes := s.Notes(); len(notes) != 1 || notes[0] != "projection access goes on without 1 stream, since the event at 5/5 (constraint)" {
		t.Errorf("notes: %q", notes)
	}
	for _, name := range names(models()) {
		if s := a.Status(name); name != "access" && (len(s.SetAside) > 0 || s.Failure != nil) {
			t.Errorf("%s is not without trouble: %+v", name, s)
		}
	}
	a.Sound(a.Sup, names(models())...)
}

// A build meets the same event, and sets it aside by itself.
func TestARebuildSetsAsideWhatTheServingRowsDo(t *testing.T) {
	t.Parallel()
	a := setupAside(t)
	must.NoError(t, a.Sup.RebuildAll(a.Ctx(), []string{"access"}, nil))
	a.shows("[k2]", "[k1 k4]")
	if s := a.Status("access"); s.Number != 2 || len(s.SetAside) != 1 || s.SetAside[0].Position != a.bad {
		t.Errorf("got %+v", s)
	}
	a.Sound(a.Sup, "access")
	must.NoError(t, generation.DropRetired(a.Ctx(), a.DB, 0))
	if n := a.Count("SELECT count(*) FROM projection_set_aside"); n != 1 {
		t.Errorf("%d streams are set aside, want that of the generation that serves", n)
	}
}

func TestAnEventThatWasSetAsideIsSkippedAndItsStreamGoesOn(t *testing.T) {
	t.Parallel()
	a := setupAside(t)
	if err := generation.Skip(a.Ctx(), a.DB, "access", domain.Position{Commit: 6, Prepare: 6}, "ops", "a guess"); err == nil {
		t.Error("an event was skipped that was not set aside")
	}
	must.NoError(t, generation.Skip(a.Ctx(), a.DB, "access", a.bad, "ops", "issued twice"))
	a.Eventually("the stream goes on", func() bool { return len(a.asideOf("access")) == 0 })
	a.shows("[k2 k3]", "[k1 k4]")
	a.Eventually("the event is counted", func() bool { return a.Status("access").Skipped == 1 })
	if skips, err := generation.Skips(a.Ctx(), a.DB, "access"); err != nil || len(skips) != 1 || skips[0].Position != a.bad || skips[0].Detail == "" {
		t.Errorf("skips: %+v, %v", skips, err)
	}
	a.Eventually("the rows are built anew, in the log's order", func() bool { return a.Status("access").Number == 2 })
	a.Sound(a.Sup, "access")
}

// What fails once more waits where it failed, longer each time; what precedes it is
// applied, once.
func TestAStreamThatFailsAgainWaitsAtTheEventThatFailed(t *testing.T) {
	t.Parallel()
	a := setupAside(t)
	must.NoError(t, generation.Retry(a.Ctx(), a.DB, "access"))
	a.Eventually("it is tried again", func() bool { s := a.asideOf("access"); return len(s) == 1 && s[0].Attempts == 2 })
	again := a.Log.Record(a.stream, modeltest.Issued(4)) // another one's, too
	a.Log.Record(a.stream, modeltest.Issued(5))
	a.Reach(a.Sup)
	must.NoError(t, generation.Skip(a.Ctx(), a.DB, "access", a.bad, "ops", "issued twice"))
	a.Eventually("it waits at the next", func() bool {
		s := a.asideOf("access")
		return len(s) == 1 && s[0].Position == again && s[0].Attempts > 0
	})
	a.shows("[k2 k3]", "[k1 k4]")
	if s := a.asideOf("access")[0]; s.Attempts != 1 || s.Revision != 4 || s.Category != generation.CategoryConstraint {
		t.Errorf("got %+v", s)
	}
	if err := generation.Retry(a.Ctx(), a.DB, "jobs"); err == nil {
		t.Error("a projection that has set nothing aside was told to try again")
	}
}

// unreadable is a world in which every read model that handles it has set aside a job
// whose second event cannot be read, with what came behind.
func setupUnreadable(t *testing.T, change func(*consumer.Limits)) (w *world, at domain.Position, stop func()) {
	t.Helper()
	w = setup(t, manyModels()...)
	w.Sup.ChangeLimits(change)
	modeltest.Lives(w.Log, "a", 3)
	stream := domain.JobStream("bad")
	w.Log.Record(stream, modeltest.Created("acc"))
	at = w.Log.Record(stream, modeltest.Claimed("ann"))
	w.Log.Spoil(at.Commit, true)
	w.Log.Record(stream, modeltest.Completed("pass"))
	modeltest.Lives(w.Log, "b", 3)
	stop = w.Run(w.Sup)
	w.reach(w.Log.Head(), "jobs", "history", "timers", "people")
	// The feed tells the log's events in their order: who has read past a place is never
	// shown what comes there later.
	w.Eventually("the feed stops", func() bool { return w.Status("events").Failure != nil })
	return w, at, stop
}

// reach waits until some read models show a position.
func (w *world) reach(at domain.Position, names ...string) {
	w.T.Helper()
	for _, name := range names {
		w.Eventually(name+" shows it", func() bool { return w.Status(name).Position.Compare(at) >= 0 })
	}
}

// status is how the job "bad" is shown.
func (w *world) statusOfBad() string {
	w.T.Helper()
	j, err := w.reads.Jobs.Job(w.Ctx(), "acc", "bad")
	must.NoError(w.T, err)
	return string(j.Status)
}

func TestAnEventThatCannotBeReadIsSetAsideByWhatHandlesIt(t *testing.T) {
	t.Parallel()
	w, at, _ := setupUnreadable(t, func(*consumer.Limits) {})
	for _, name := range []string{"jobs", "timers"} {
		if s := w.asideOf(name); len(s) != 1 || s[0].Position != at || s[0].Category != generation.CategoryDecode || s[0].Type != "job.claimed" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := w.Status("people"); len(s.SetAside) > 0 || s.Failure != nil {
		t.Errorf("people, who does not handle it: %+v", s)
	}
	if f := w.Status("events").Failure; f.Position != at || f.Category != generation.CategoryDecode {
		t.Errorf("events: %+v", f)
	}
	if got := w.statusOfBad(); got != "pending" {
		t.Errorf("the job is %s, want it as it was before", got)
	}
	w.Sound(w.Sup, "jobs", "timers", "history", "people")
}

func TestWhatWasSetAsideIsAppliedOnceThatCanBeDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*consumer.Limits)
		again  func(*world)
	}{
		"by an operator's word": {again: func(w *world) {
			for _, name := range []string{"jobs", "timers", "events"} {
				must.NoError(w.T, generation.Retry(w.Ctx(), w.DB, name))
			}
		}},
		"by itself, after a while": {
			change: func(l *consumer.Limits) { l.Again = 10 * time.Millisecond },
			again:  func(w *world) { must.NoError(w.T, generation.Retry(w.Ctx(), w.DB, "events")) },
		},
		"by the next process": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := c.change
			if change == nil {
				change = func(*consumer.Limits) {}
			}
			w, at, stop := setupUnreadable(t, change)
			sup := w.Sup
			if c.again == nil {
				stop()
				sup = w.Service(w.Log, manyModels()...)
			}
			w.Log.Spoil(at.Commit, false)
			if c.again == nil {
				w.Run(sup)
				must.NoError(t, generation.Retry(w.Ctx(), w.DB, "events"))
			} else {
				c.again(w)
			}
			for _, name := range []string{"jobs", "timers"} {
				w.Eventually(name+" has applied it", func() bool { return len(w.asideOf(name)) == 0 })
				w.Eventually(name+" is built anew, in the log's order", func() bool { return w.Status(name).Number > 1 })
			}
			if got := w.statusOfBad(); got != "completed" {
				t.Errorf("the job is %s", got)
			}
			w.Reach(sup)
			w.Sound(sup, names(manyModels())...)
		})
	}
}

// faulty fails as the test wants at each event, or at those of one stream.
type faulty struct {
	consumer.Projector
	stream string // empty: any
	fail   func(tx *sqlx.Tx) error
}

func (b faulty) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	for _, e := range batch {
		if b.stream == "" || e.Stream == b.stream {
			if err := b.fail(tx); err != nil {
				return err
			}
		}
	}
	return b.Projector.Apply(ctx, tx, schema, batch)
}

// A bug in the code does not set the world aside.
func TestAProjectionWhoseEveryEventFailsStops(t *testing.T) {
	t.Parallel()
	w := setup(t, faulty{Projector: jobs.Projector, fail: func(*sqlx.Tx) error { return errors.New("a bug") }})
	modeltest.Lives(w.Log, "a", 15)
	w.Run(w.Sup)
	w.Eventually("it stops", func() bool { return w.Status("jobs").Failure != nil })
	s := w.Status("jobs")
	if len(s.SetAside) != 10 || s.Failure.Detail != "a bug" || !strings.HasPrefix(s.Problem(), "projection jobs stopped at ") {
		t.Errorf("%d streams were set aside, want 10, and %+v, %q", len(s.SetAside), s.Failure, s.Problem())
	}
}

func TestAFoldThatPanicsAtAnEventSetsItAside(t *testing.T) {
	t.Parallel()
	w := setup(t, faulty{Projector: jobs.Projector, stream: domain.JobStream("a1"), fail: func(*sqlx.Tx) error { panic("no such thing") }})
	modeltest.Lives(w.Log, "a", 3)
	w.Run(w.Sup)
	w.Reach(w.Sup)
	if s := w.asideOf("jobs"); len(s) != 1 || s[0].Stream != "job-a1" || s[0].Detail != "panic: no such thing" || s[0].Category != generation.CategoryApply {
		t.Errorf("got %+v", s)
	}
}

// A NUL went into the log before the codec refused it: no row can hold it, ever.
func TestANULOfAnOlderBinaryIsSetAside(t *testing.T) {
	t.Parallel()
	w := setup(t)
	modeltest.Lives(w.Log, "a", 4)
	at := w.Log.RecordStored(domain.JobStream("a3"), "job.rated", `{"rating":1,"note":"a\u0000b","at":"2026-03-01T12:00:00Z"}`)
	w.Run(w.Sup)
	w.Reach(w.Sup)
	w.Log.Record(domain.JobStream("a3"), &job.Rated{Rating: 5, At: modeltest.Noon})
	modeltest.Lives(w.Log, "b", 4)
	w.Reach(w.Sup)
	if s := w.asideOf("jobs"); len(s) != 1 || s[0].Position != at || s[0].Category != generation.CategoryData || !strings.Contains(s[0].Detail, "Unicode") {
		t.Errorf("got %+v", s)
	}
	w.Sound(w.Sup, names(models())...)
}

// Trouble of Postgres, whatever its event, sets nothing aside.
func TestWhatIsNotTheEventsSetsNothingAside(t *testing.T) {
	t.Parallel()
	for code, of := range map[string]bool{
		"22021": true, "22P02": true, "23505": true, "23514": true, "21000": true, "54000": true, "P0001": true,
		"08006": false, "25006": false, "28000": false, "40001": false, "40P01": false, "42P01": false, "42501": false, "42703": false,
		"53100": false, "53200": false, "55P03": false, "57014": false, "57P01": false, "58030": false, "XX001": false,
	} {
		if got := consumer.OfEvent(fmt.Errorf("insert: %w", &pq.Error{Code: pqerror.Code(code)})); got != of {
			t.Errorf("%s is the event's: %v", code, got)
		}
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, io.EOF, sql.ErrTxDone, sql.ErrConnDone, domain.Unavailable(errors.New("the log is gone"))} {
		if consumer.OfEvent(fmt.Errorf("insert: %w", err)) {
			t.Errorf("%v is the event's", err)
		}
	}

	t.Run("the line goes on once it is over", func(t *testing.T) {
		t.Parallel()
		left := 30
		w := setup(t, faulty{Projector: jobs.Projector, stream: domain.JobStream("a1"), fail: func(*sqlx.Tx) error {
			if left--; left > 0 {
				return &pq.Error{Code: "53100", Message: "could not extend file"}
			}
			return nil
		}})
		modeltest.Lives(w.Log, "a", 3)
		w.Run(w.Sup)
		w.Reach(w.Sup)
		if s := w.Status("jobs"); len(s.SetAside) > 0 || s.Failure != nil || left > 0 {
			t.Errorf("got %+v, with %d failures left", s, left)
		}
		w.Sound(w.Sup, "jobs")
	})
	t.Run("the line stops where a table is gone", func(t *testing.T) {
		t.Parallel()
		w := setup(t, faulty{Projector: jobs.Projector, stream: domain.JobStream("a1"), fail: func(tx *sqlx.Tx) error {
			_, err := tx.ExecContext(context.Background(), "SELECT FROM nowhere")
			return err
		}})
		modeltest.Lives(w.Log, "a", 3)
		w.Run(w.Sup)
		w.Eventually("it stops", func() bool { return w.Status("jobs").Failure != nil })
		if s := w.asideOf("jobs"); len(s) > 0 {
			t.Errorf("set aside: %+v", s)
		}
	})
}

// Who lost the lease sets nothing aside, and what it has set aside its successor knows.
func TestOnlyTheOwnerOfTheLeaseSetsAside(t *testing.T) {
	t.Parallel()
	p := access.Projector
	w := setup(t, p)
	stream := domain.AccountStream("acc")
	w.Log.Record(stream, modeltest.Issued(1))
	w.Log.Record(stream, modeltest.Issued(1), modeltest.Issued(2))
	events := w.Log.All()
	old, err := w.Sup.Acquire(w.Ctx(), p, "old", time.Hour)
	must.NoError(t, err)
	must.NoError(t, old.Commit(w.Ctx(), events[:1]))
	w.Exec("UPDATE projection_checkpoints SET lease_until = now() - interval '1 hour'")
	heir, err := w.Sup.Acquire(w.Ctx(), p, "heir", time.Hour)
	must.NoError(t, err)
	if err := old.SetAside(w.Ctx(), events[1], errors.New("it fails")); !errors.Is(err, generation.ErrNotOwner) {
		t.Errorf("got %v", err)
	}
	if n := w.Count("SELECT count(*) FROM projection_set_aside"); n != 0 {
		t.Errorf("%d streams were set aside without the lease", n)
	}
	must.NoError(t, heir.SetAside(w.Ctx(), events[1], errors.New("it fails")))
	if heir.Stored() != eventstore.At(events[1].Position) {
		t.Errorf("the checkpoint is at %v", heir.Stored())
	}
	w.Exec("UPDATE projection_checkpoints SET owner = NULL, lease_until = NULL") // it crashes
	w.Run(w.Sup)
	w.Reach(w.Sup)
	if s := w.Status("access"); len(s.SetAside) != 1 || s.SetAside[0].Position != events[1].Position || s.Applied != 1 {
		t.Errorf("got %+v", s)
	}
	if got := fmt.Sprint(w.keys("acc")); got != "[k1]" {
		t.Errorf("the keys are %s", got)
	}
}
