package origin

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Restored says that the log was brought back from a backup. It begins a new generation
// of the log. Both generations share all events before it. The events behind it may
// differ from those that readers of the earlier generation saw.
type Restored struct {
	// Place is the place of the database in which the log was found; empty where an
	// operator reports the restore. It makes a repeat recognisable.
	Place string `json:"place,omitempty"`
	// Reason is the operator's.
	Reason string `json:"reason,omitempty"`
}

func (*Restored) EventType() string { return "log.restored" }

// Trimmed says that events up to and including a place may be missing, such as those of
// ended jobs that an operator has moved to an archive and scavenged. Rows that were
// projected from them stay. A reader that starts before the place would miss events
// without notice.
type Trimmed struct {
	// Commit and Prepare are the place of the last event that may be missing.
	Commit  int64 `json:"commit"`
	Prepare int64 `json:"prepare"`
	// Reason is the operator's.
	Reason string `json:"reason"`
}

func (*Trimmed) EventType() string { return "log.trimmed" }

// Generation is a stretch of a log's life that no restore interrupts.
type Generation struct {
	// Mark stands for it in cursors: eight hexadecimal digits, which no other generation
	// of this log or another has, but by a chance of one in 2^32.
	Mark string
	// From is the place of the event that began it; zero for the first generation.
	From domain.Position
}

// Lineage identifies a log and has its restores and trims. The zero value is a log that
// is not known yet.
type Lineage struct {
	Name        string // the log's
	Generations []Generation
	// Gone is the place up to which events may be missing; zero: all are kept.
	Gone domain.Position
}

// Begin is the lineage of a log of that name. stands distinguishes copies of a log, which
// have the same name.
func Begin(name, stands string) Lineage {
	return Lineage{Name: name, Generations: []Generation{{Mark: markOf(name, stands)}}}
}

// Restored is the lineage behind a restore, an event of that id at that place.
func (l Lineage) Restored(id uuid.UUID, at domain.Position) Lineage {
	if len(l.Generations) == 0 {
		return l
	}
	before := l.Generations[len(l.Generations)-1].Mark
	l.Generations = append(slices.Clip(l.Generations), Generation{Mark: markOf(before, id.String()), From: at})
	return l
}

// Trimmed is the lineage behind a trim.
func (l Lineage) Trimmed(e *Trimmed) Lineage {
	at := domain.Position{Commit: uint64(e.Commit), Prepare: uint64(e.Prepare)}
	l.Gone = l.Gone.Max(at)
	return l
}

// markOf derives a mark from the mark before it and a text that makes it different.
func markOf(before, by string) string {
	sum := sha256.Sum256([]byte(before + "\n" + by))
	return hex.EncodeToString(sum[:4])
}

// Generation counts from 1, and is 0 for a log that is not known.
func (l Lineage) Generation() int { return len(l.Generations) }

// String names the log and its generation, such as 6f3c…/2; empty for a log that is not
// known.
func (l Lineage) String() string {
	if len(l.Generations) == 0 {
		return ""
	}
	return l.Name + "/" + strconv.Itoa(len(l.Generations))
}

// Mark is the mark of today's generation; empty for a log that is not known.
func (l Lineage) Mark() string {
	if len(l.Generations) == 0 {
		return ""
	}
	return l.Generations[len(l.Generations)-1].Mark
}

// Parted gives the generation of a mark, and where the log of today parts from it: a
// place at or behind parted is another event today, if any. With known false the mark is
// of another log, or of a generation that a restore took back. parted is zero for today's
// generation, which never parts.
func (l Lineage) Parted(mark string) (generation int, parted domain.Position, known bool) {
	for i, g := range l.Generations {
		if g.Mark != mark {
			continue
		}
		if i+1 < len(l.Generations) {
			parted = l.Generations[i+1].From
		}
		return i + 1, parted, true
	}
	return 0, domain.Position{}, false
}
