package binding_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/binding"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections"
	"humanqa/projections/auditlog"
)

// placed is a log whose events stand at other places, as those of an original
// server do, which counts bytes.
type placed struct {
	boundLog

	at    func(domain.Position) domain.Position
	since time.Time
}

func (p placed) Load(ctx context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	return p.boundLog.Load(ctx, stream, from, func(r domain.Recorded) error {
		r.Position, r.Stored.Copied = p.at(r.Position), p.since
		return each(r)
	})
}

func (p placed) Head(context.Context) (domain.Position, error) { return p.at(p.Memory.Head()), nil }

func (p placed) Walk(_ context.Context, each func(eventstore.RawEvent) error) error {
	for _, r := range p.All() {
		if err := each(eventstore.RawEvent{ID: r.ID, Position: p.at(r.Position)}); err != nil {
			return err
		}
	}
	return nil
}

func asIs(p domain.Position) domain.Position { return p }

// places are all that the database holds, as text.
func (w *world) places() map[string]string {
	w.T.Helper()
	all := map[string]string{}
	for name, query := range map[string]string{
		"checkpoints": "SELECT name || ' ' || commit_position || '/' || prepare_position FROM projection_checkpoints ORDER BY name",
		"failure":     "SELECT failure_commit || '/' || failure_prepare FROM projection_checkpoints WHERE failure_commit IS NOT NULL",
		"skips":       "SELECT commit_position || '/' || prepare_position FROM projection_skips ORDER BY commit_position",
		"feed":        "SELECT commit_position || '/' || prepare_position FROM readmodel.account_events ORDER BY commit_position",
		"tree":        "SELECT commit_position || '/' || prepare_position FROM readmodel.tree_leaves ORDER BY commit_position",
		"timers":      "SELECT kind || key || ' ' || position FROM readmodel.timers ORDER BY kind, key",
		"leases":      "SELECT kind || key || ' ' || position FROM policy.leases ORDER BY kind, key",
	} {
		var rows []string
		must.NoError(w.T, w.DB.SelectContext(w.Ctx(), &rows, query))
		if len(rows) == 0 {
			w.T.Fatalf("no places in %s", name)
		}
		all[name] = strings.Join(rows, "\n")
	}
	return all
}

func TestADatabaseIsTakenAlongToACopyOfItsLog(t *testing.T) {
	t.Parallel()
	w := setup(t, append(projections.All(), auditlog.Projector{})...)
	from := placed{boundLog: boundLog{w.Log}, at: asIs}
	bytes := placed{boundLog: boundLog{w.Log}, since: modeltest.Noon, at: func(p domain.Position) domain.Position {
		return domain.Position{Commit: 3*p.Commit + 4, Prepare: 3*p.Prepare + 5}
	}}
	must.NoError(t, binding.New(w.DB, from, time.Now).Bind(w.Ctx()))
	modeltest.Everything(w.Log)
	stop := w.Run(w.Sup)
	w.Reach(w.Sup)
	w.Eventually("the tree and the feed are there, too", func() bool {
		return w.Count("SELECT count(*) FROM projection_checkpoints WHERE commit_position < $1", w.Log.Head().Commit) == 0
	})
	w.Exec("INSERT INTO projection_skips (name, commit_position, prepare_position, detail, who, why) VALUES ('jobs', 7, 7, 'd', 'w', 'y')")
	w.Exec("INSERT INTO policy.leases (kind, key, position, state, until) SELECT kind, key, position, 'settled', now() FROM readmodel.timers LIMIT 3")
	w.Exec("UPDATE projection_checkpoints SET failure_commit = 5, failure_prepare = 5 WHERE name = 'jobs'")
	before := w.places()

	if err := binding.Rebind(w.Ctx(), w.DB, from, bytes); !errors.Is(err, binding.ErrServed) {
		t.Errorf("while the service runs: got %v", err)
	}
	stop()
	must.NoError(t, generation.ReleaseAll(w.Ctx(), w.DB))
	moved := binding.New(w.DB, bytes, time.Now)
	wantRefusal(t, moved.Bind(w.Ctx()), "are copies of each other")

	for range 2 { // the second time there is nothing to do
		must.NoError(t, binding.Rebind(w.Ctx(), w.DB, from, bytes))
	}
	after := w.places()
	head := bytes.at(w.Log.Head())
	for name, rows := range after {
		if rows == before[name] || name == "checkpoints" && strings.Count(rows, " "+head.String()) != strings.Count(rows, "\n")+1 {
			t.Errorf("%s did not move:\n%s", name, rows)
		}
	}
	if after["skips"] != "25/26" || after["failure"] != "19/20" {
		t.Errorf("got %s and %s", after["skips"], after["failure"])
	}
	if err := moved.Bind(w.Ctx()); err != nil {
		t.Errorf("the copy: %v", err)
	}
	wantRefusal(t, binding.New(w.DB, from, time.Now).Bind(w.Ctx()), "are copies of each other")

	// And back, where everything is as it was.
	must.NoError(t, binding.Rebind(w.Ctx(), w.DB, bytes, from))
	for name, rows := range w.places() {
		if rows != before[name] {
			t.Errorf("%s came back as\n%s", name, rows)
		}
	}
	w.Run(w.Service(w.Log, append(projections.All(), auditlog.Projector{})...))
	w.Sound(w.Sup, projections.Names()...)
}

func TestADatabaseIsNotTakenAlongToWhatIsNoCopy(t *testing.T) {
	t.Parallel()
	w := setup(t)
	from := placed{boundLog: boundLog{w.Log}, at: asIs}
	must.NoError(t, binding.New(w.DB, from, time.Now).Bind(w.Ctx()))
	w.Log.Record("job-"+uuid.NewString(), modeltest.Created("acc"))
	half := placed{boundLog: boundLog{w.Log.Copy()}, at: asIs, since: modeltest.Noon}
	half.Lose(1)
	stranger := placed{boundLog: boundLog{setup(t).Log}, at: asIs}
	if err := binding.New(w.DB, stranger, time.Now).Bind(w.Ctx()); err == nil {
		t.Error("the database took another log")
	}
	for said, to := range map[string]placed{"1 events are in one of the two logs only": half, "is no copy of": stranger} {
		if err := binding.Rebind(w.Ctx(), w.DB, from, to); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("got %v, want %q", err, said)
		}
	}
	third := placed{boundLog: half.boundLog, at: asIs, since: modeltest.Noon.Add(time.Hour)}
	if err := binding.Rebind(w.Ctx(), w.DB, half, third); err == nil || !strings.Contains(err.Error(), "copies of each other") {
		t.Errorf("from a log that is not the database's: got %v", err)
	}
}
