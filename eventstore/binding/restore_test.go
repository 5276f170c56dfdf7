package binding_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

// elsewhere has the database stand where no service ran yet, as a restore does.
func (w *world) elsewhere() { w.Exec("UPDATE projection_log SET place = 'another server'") }

func (w *world) statements(eventType string) (found []domain.Recorded) {
	for _, r := range w.Log.Stream(origin.Stream) {
		if r.Type == eventType {
			found = append(found, r)
		}
	}
	return found
}

func TestARestoreBeginsAGenerationOfTheLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	before := w.bind(w.Log).Lineage()
	if again := w.bind(w.Log).Lineage(); again.Generation() != 1 || again.Mark() != before.Mark() {
		t.Errorf("a second start made %+v of %+v", again, before)
	}
	modeltest.Lives(w.Log, "a", 3)
	w.elsewhere()
	after := w.bind(w.Log).Lineage()
	restored := w.statements("log.restored")
	if len(restored) != 1 || after.Generation() != 2 || after.Name != before.Name {
		t.Fatalf("%d restores, %s after %s", len(restored), after, before)
	}
	if n, parted, known := after.Parted(before.Mark()); n != 1 || parted != restored[0].Position || !known {
		t.Errorf("generation %d parted at %s, %v", n, parted, known)
	}
	if again := w.bind(w.Log).Lineage(); again.Generation() != 2 || len(w.statements("log.restored")) != 1 {
		t.Errorf("the start after it made %s", again)
	}
}

// The event is written first: the next start only has the row to write.
func TestACrashBetweenTheGenerationAndItsRowIsHealed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.bind(w.Log)
	w.elsewhere()
	w.bind(w.Log)
	w.elsewhere() // the row is as it was before the crash
	if l := w.bind(w.Log).Lineage(); l.Generation() != 2 {
		t.Errorf("the log is %s", l)
	}
}

func TestTwoProcessesThatStartOnARestoreBeginOneGeneration(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.bind(w.Log)
	w.elsewhere()
	bound := make(chan error)
	for range 4 {
		go func() { bound <- w.binding(w.Log).Bind(w.Ctx()) }()
	}
	for range 4 {
		must.NoError(t, <-bound)
	}
	if n := len(w.statements("log.restored")); n != 1 {
		t.Errorf("%d generations began", n)
	}
}

// A database of an older version does not say where it stood.
func TestTheFirstStartOfThisVersionIsNoRestore(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.bind(w.Log)
	w.Exec("UPDATE projection_log SET place = NULL")
	if l := w.bind(w.Log).Lineage(); l.Generation() != 1 || w.Count("SELECT count(*) FROM projection_log WHERE place IS NOT NULL") != 1 {
		t.Errorf("the log is %s", l)
	}
}

func TestAnOperatorStatesARestoreAndATrim(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.bind(w.Log)
	l, err := b.NoteRestored(w.Ctx(), "the disk was put back")
	if err != nil || l.Generation() != 2 || b.Lineage().Mark() != l.Mark() {
		t.Errorf("%s, %v", l, err)
	}
	head := w.Log.Head()
	if l, err = b.NoteTrimmed(w.Ctx(), head, "archived"); err != nil || l.Gone != head {
		t.Errorf("%+v, %v", l, err)
	}
	beyond := domain.Position{Commit: head.Commit + 9, Prepare: head.Prepare + 9}
	if _, err := b.NoteTrimmed(w.Ctx(), beyond, "archived"); err == nil {
		t.Error("a trim beyond the end is accepted")
	}
	if l := w.bind(w.Log).Lineage(); l.Generation() != 2 || l.Gone != head {
		t.Errorf("after a start the log is %s, gone up to %s", l, l.Gone)
	}
}
