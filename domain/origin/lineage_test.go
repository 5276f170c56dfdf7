package origin

import (
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
)

func at(n uint64) domain.Position { return domain.Position{Commit: n, Prepare: n} }

func TestALineageKnowsItsGenerations(t *testing.T) {
	first := Begin("log", "1/1")
	second := first.Restored(uuid.MustParse("00000000-0000-0000-0000-000000000001"), at(50))
	third := second.Restored(uuid.MustParse("00000000-0000-0000-0000-000000000002"), at(80))
	if first.String() != "log/1" || third.String() != "log/3" || second.Generation() != 2 {
		t.Errorf("%s, %s, %s", first, second, third)
	}
	for _, c := range []struct {
		mark       string
		generation int
		parted     domain.Position
		known      bool
	}{
		{first.Mark(), 1, at(50), true},
		{second.Mark(), 2, at(80), true},
		{third.Mark(), 3, domain.Position{}, true},
		{"00000000", 0, domain.Position{}, false},
	} {
		generation, parted, known := third.Parted(c.mark)
		if generation != c.generation || parted != c.parted || known != c.known {
			t.Errorf("%s: generation %d, parted at %s, %v", c.mark, generation, parted, known)
		}
	}
	if _, _, known := second.Parted(third.Mark()); known {
		t.Error("a later generation is known before it began")
	}
}

// Two restores of one backup begin two logs, though both are a generation 2.
func TestEachRestoreHasAMarkOfItsOwn(t *testing.T) {
	backup := Begin("log", "1/1")
	one, other := backup.Restored(uuid.New(), at(50)), backup.Restored(uuid.New(), at(50))
	marks := map[string]bool{backup.Mark(): true, one.Mark(): true, other.Mark(): true, Begin("log", "1/1 since noon").Mark(): true}
	if len(marks) != 4 {
		t.Errorf("%d marks of four logs", len(marks))
	}
	if len(backup.Generations) != 1 {
		t.Error("a restore changed the lineage that it began at")
	}
}

func TestALogThatIsNotKnownHasNoMark(t *testing.T) {
	var none Lineage
	none = none.Restored(uuid.New(), at(1))
	if none.Mark() != "" || none.String() != "" || none.Generation() != 0 {
		t.Errorf("%+v", none)
	}
}

func TestATrimOnlyReachesFurther(t *testing.T) {
	l := Begin("log", "1/1").Trimmed(&Trimmed{Commit: 9, Prepare: 9}).Trimmed(&Trimmed{Commit: 4, Prepare: 4})
	if l.Gone != at(9) {
		t.Errorf("gone up to %s", l.Gone)
	}
}
