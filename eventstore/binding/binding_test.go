package binding_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/eventstore/binding"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

// boundLog is a log in memory as a Binding asks it.
type boundLog struct{ *logtest.Memory }

func (l boundLog) Head(context.Context) (domain.Position, error) { return l.Memory.Head(), nil }

func (w *world) binding(log *logtest.Memory) *binding.Binding {
	return binding.New(w.DB, boundLog{log}, func() time.Time { return modeltest.Noon })
}

func (w *world) bind(log *logtest.Memory) *binding.Binding {
	w.T.Helper()
	b := w.binding(log)
	must.NoError(w.T, b.Bind(w.Ctx()))
	return b
}

// wantRefusal checks what is refused, with a next step, and by whom.
func wantRefusal(t *testing.T, err error, message string) {
	t.Helper()
	var refusal *domain.Error
	if !errors.As(err, &refusal) || refusal.Kind != domain.KindUnavailable || !strings.Contains(refusal.Message, message) || refusal.Hint == "" {
		t.Errorf("got %v, want a refusal with a hint: %s", err, message)
	}
}

func TestANewLogIsNamedFirstOfAll(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.bind(w.Log)
	events := w.Log.All()
	if len(events) != 1 || events[0].Stream != origin.Stream {
		t.Fatalf("the log is %+v", events)
	}
	named := events[0].Event.(*origin.Named)
	if uuid.Validate(named.LogID) != nil || !named.At.Equal(modeltest.Noon) {
		t.Errorf("its name is %+v", named)
	}
	w.bind(w.Log) // as every start does
	if n := len(w.Log.All()); n != 1 {
		t.Errorf("%d events after a second start", n)
	}
}

func TestALogThatHasNoNameYetIsTakenOver(t *testing.T) {
	t.Parallel()
	w := setup(t)
	modeltest.Lives(w.Log, "a", 3)
	w.Run(w.Sup)
	w.Reach(w.Sup)
	before := len(w.Log.All())
	b := w.bind(w.Log)
	if n := len(w.Log.All()); n != before+1 || b.Problem() != nil {
		t.Errorf("%d events became %d, problem %v", before, n, b.Problem())
	}
	w.Reach(w.Sup)
	w.Sound(w.Sup, "jobs", "access")
}

func TestACrashBetweenNameAndBindingIsHealed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Log.Record(origin.Stream, &origin.Named{LogID: "the-name", At: modeltest.Noon})
	w.bind(w.Log)
	if n := w.Count("SELECT count(*) FROM projection_log WHERE log_id = 'the-name'"); n != 1 || len(w.Log.All()) != 1 {
		t.Errorf("bound %d times, the log has %d events", n, len(w.Log.All()))
	}
}

func TestTwoProcessesThatStartAtOnceAgreeOnTheName(t *testing.T) {
	t.Parallel()
	w := setup(t)
	bound := make(chan error)
	for range 4 {
		go func() { bound <- w.binding(w.Log).Bind(w.Ctx()) }()
	}
	for range 4 {
		if err := <-bound; err != nil {
			t.Error(err)
		}
	}
	if n := len(w.Log.All()); n != 1 {
		t.Errorf("the log was named %d times", n)
	}
}

func TestAnotherLogIsRefusedByName(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.bind(w.Log)
	ours := w.Log.All()[0].Event.(*origin.Named).LogID
	other := logtest.New()
	other.Record(origin.Stream, &origin.Named{LogID: "other", At: modeltest.Noon})
	wantRefusal(t, w.binding(other).Bind(w.Ctx()), "the event log is other, and this database belongs to "+ours)
	wantRefusal(t, w.binding(logtest.New()).Bind(w.Ctx()), "the event log is without a name, and this database belongs to "+ours)
}

func TestAShorterLogIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.bind(w.Log)
	w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 3)
	w.Reach(w.Sup)
	w.Eventually("checkpoints are stored", func() bool {
		return w.Count("SELECT max(commit_position) FROM projection_checkpoints") == len(w.Log.All())
	})
	w.Log.Lose(2)
	wantRefusal(t, w.binding(w.Log).Bind(w.Ctx()), "it has lost events, or is an older copy")
}

// A database that has seen a log before logs had names knows at least how far.
func TestAnEmptyLogBehindADatabaseThatHasSeenOneIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stop := w.Run(w.Sup)
	modeltest.Lives(w.Log, "a", 3)
	w.Reach(w.Sup)
	stop()
	empty := logtest.New()
	wantRefusal(t, w.binding(empty).Bind(w.Ctx()), "it has lost events, or is an older copy")
	if len(empty.All()) != 0 {
		t.Error("the log was named all the same")
	}
}

func TestALogThatIsAnotherWhileTheServiceRunsIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	log := &swapped{boundLog: boundLog{w.Log}}
	b := binding.New(w.DB, log, time.Now)
	must.NoError(t, b.Bind(w.Ctx()))
	guarded := b.Guard()
	append1 := func() error {
		_, err := guarded.Append(w.Ctx(), "job-"+uuid.NewString(), domain.NoStream, []domain.NewEvent{
			{ID: uuid.New(), Event: modeltest.Created("acc"), Meta: domain.Metadata{CommandID: uuid.New(), Time: modeltest.Noon}},
		})
		return err
	}
	must.NoError(t, append1())
	log.boundLog = boundLog{logtest.New()}
	wantRefusal(t, b.Check(w.Ctx()), "without a name")
	wantRefusal(t, append1(), "without a name")
	wantRefusal(t, guarded.Load(w.Ctx(), "job-1", 0, nil), "without a name")
	if n := len(log.All()); n != 0 {
		t.Errorf("%d events were written to the other log", n)
	}

	log.boundLog = boundLog{w.Log}
	if err := b.Check(w.Ctx()); err != nil || append1() != nil || b.Problem() != nil {
		t.Errorf("after the log came back: %v, %v", err, b.Problem())
	}
}

// swapped is an address at which another log may answer.
type swapped struct{ boundLog }
