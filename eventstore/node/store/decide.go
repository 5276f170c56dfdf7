package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Expected revisions below zero, numbered as in the original.
const (
	ExpectNoStream     = -1
	ExpectAny          = -2
	ExpectStreamExists = -4
)

type Operation int

const (
	OpAppend Operation = iota
	OpDelete
	OpTombstone
)

// Proposed is an event on its way into the log.
type Proposed struct {
	ID       uuid.UUID
	JSON     bool
	Type     string
	Data     []byte
	Metadata []byte
}

// Write is one request to the writer. done has room for the one outcome.
type Write struct {
	ctx      context.Context
	op       Operation
	stream   string
	Expected int64
	events   []Proposed
	size     int // bytes of data, metadata and names, of each event
	done     chan Outcome
}

// NewWrite makes a write without events. It is given up when ctx ends before the writer
// has begun with it.
func NewWrite(ctx context.Context, op Operation, stream string, expected int64) *Write {
	return &Write{ctx: ctx, op: op, stream: stream, Expected: expected, done: make(chan Outcome, 1)}
}

// Propose adds an event. It gives the bytes of its data, metadata and names, those of the
// write by now, and the number of events.
func (w *Write) Propose(e Proposed) (own, bytes, events int) {
	own = len(e.Data) + len(e.Metadata) + len(e.Type) + len(w.stream)
	w.size += own
	w.events = append(w.events, e)
	return own, w.size, len(w.events)
}

// expired says that no client waits for the write any more.
func (w *Write) expired() bool { return w.ctx.Err() != nil }

// OutcomeKind tells outcomes apart.
type OutcomeKind int

const (
	// Written: the events are in the log, now or since an earlier attempt.
	Written OutcomeKind = iota
	WrongVersion
	Deleted
	// failed: err tells the reason; it is unknown whether the log has the events.
	failed
)

// Outcome answers one write. Revision is the stream's last revision after a
// success and its current one on a wrong version. Position is zero if the
// write had no event.
type Outcome struct {
	Kind     OutcomeKind
	Revision int64
	Position int64
	err      error
}

// decider turns writes into the next group. It keeps the streams' states ahead of
// the committed events: each write sees the ones before it.
type decider struct {
	states  *states
	ids     *ids
	lookups *lookups
	head    int64
	created int64
	group   *group
}

// group holds the records to insert in one commit, and the writes to answer after it,
// each with its outcome.
type group struct {
	records  []*Record
	members  []*Write
	outcomes []Outcome
	bytes    int
	created  int64
	final    bool // it is written though a client gives up, so that the group is not decided for ever

	// absent are the streams that were assumed to have no event when the group was
	// decided. proved gets whether that was true; if not, nothing was written and no
	// append was answered.
	absent []string
	proved chan bool
}

// assumeAbsent makes the next batch be decided as if these streams had no event.
func (d *decider) assumeAbsent(absent []string) {
	d.group.absent, d.group.proved = absent, make(chan bool, 1)
	for _, name := range absent {
		d.states.held.Add(name, &state{last: NoStream})
	}
}

// undoGroup undoes the decision of the last group, which was not written. The states of
// its streams are looked up again.
func (d *decider) undoGroup(g *group) []*Write {
	d.head -= int64(len(g.records))
	d.ids.undo(d.head)
	for _, w := range g.members {
		d.states.held.Remove(w.stream)
		d.states.held.Remove(companion(w.stream))
	}
	return g.members
}

func (g *group) length() int { return len(g.records) + len(g.members) }

func (g *group) full() bool { return g.length() >= groupLength || g.bytes >= groupBytes }

// refuse answers writes without an outcome.
func refuse(writes []*Write, err error) {
	for _, w := range writes {
		w.done <- Outcome{Kind: failed, err: err}
	}
}

// decideBatch adds a batch of writes to the group; the states that they need are loaded.
// After an error no member of the group has an outcome.
func (d *decider) decideBatch(ctx context.Context, batch []*Write, committed int64) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	d.group.members = append(d.group.members, batch...)
	if d.group.created == 0 {
		// Creation times never go back, even if the clock does.
		d.created = max(d.created, time.Now().UnixMicro())
		d.group.created = d.created
	}
	d.ids.trim(committed)
	for _, w := range batch {
		out, err := d.decideWrite(ctx, w)
		if err != nil {
			return err
		}
		d.group.outcomes = append(d.group.outcomes, out)
		d.group.bytes += w.size
	}
	return nil
}

func (d *decider) decideWrite(ctx context.Context, w *Write) (Outcome, error) {
	st, other, err := d.states.pair(w.stream)
	if err != nil {
		return Outcome{}, err
	}
	if st.last == tombstoned || IsMetaStream(w.stream) && other.last == tombstoned {
		return Outcome{Kind: Deleted}, nil
	}
	softDeleted := !IsMetaStream(w.stream) && other.meta.deleted()
	settled, out, err := d.checkExpected(ctx, w, st, other, softDeleted)
	if err != nil || settled {
		return out, err
	}
	switch w.op {
	case OpDelete:
		if st.last == NoStream && other.last == NoStream {
			return Outcome{Kind: WrongVersion, Revision: NoStream}, nil
		}
		return d.writeMetadata(companion(w.stream), other, deletedMetadata), nil
	case OpTombstone:
		r := d.addRecord(w.stream, tombstoned, Proposed{ID: uuid.New(), Type: TypeStreamDeleted})
		st.last = tombstoned
		return Outcome{Kind: Written, Revision: tombstoned, Position: r.Position}, nil
	default:
		return d.appendEvents(w, st, other, softDeleted), nil
	}
}

// checkExpected is the original's rule of expected revisions and idempotency. settled
// means the outcome is final; otherwise the write goes ahead.
func (d *decider) checkExpected(ctx context.Context, w *Write, st, other *state, softDeleted bool) (settled bool, out Outcome, err error) {
	wrong := Outcome{Kind: WrongVersion, Revision: st.last}
	anew := w.Expected == ExpectNoStream && softDeleted // a deleted stream may be created anew
	switch {
	case w.Expected == ExpectStreamExists && softDeleted:
		return true, Outcome{Kind: Deleted}, nil
	case w.Expected == ExpectStreamExists && st.last == NoStream && (IsMetaStream(w.stream) || other.last == NoStream):
		return true, wrong, nil
	case w.Expected == ExpectAny, w.Expected == ExpectStreamExists:
		settled, out = d.repeatOfLast(w, st)
		return settled, out, nil
	case w.Expected > st.last:
		return true, wrong, nil
	case w.Expected == st.last:
		return false, Outcome{}, nil
	case len(w.events) == 0 && (w.op == OpAppend || !anew):
		return true, wrong, nil
	}
	matched, last, err := d.repeatOfPlaced(ctx, w, st)
	switch {
	case err != nil:
		return false, Outcome{}, err
	case matched == len(w.events) && matched > 0:
		return true, Outcome{Kind: Written, Revision: w.Expected + int64(matched), Position: last}, nil
	case matched == 0 && anew:
		return false, Outcome{}, nil
	}
	return true, wrong, nil
}

// repeatOfLast recognises a resend without an expected revision among the log's last
// events. Half a repeat is a conflict.
func (d *decider) repeatOfLast(w *Write, st *state) (settled bool, out Outcome) {
	for i, e := range w.events {
		at, position, ok := d.ids.find(e.ID)
		switch ok = ok && at.stream == w.stream; {
		case !ok && i == 0:
			return false, Outcome{}
		case !ok:
			return true, Outcome{Kind: WrongVersion, Revision: st.last}
		}
		out = Outcome{Kind: Written, Revision: at.revision, Position: position}
	}
	return len(w.events) > 0, out
}

// repeatOfPlaced counts how many of the events, from the first on, already
// stand at the places the expected revision gives them.
func (d *decider) repeatOfPlaced(ctx context.Context, w *Write, st *state) (matched int, position int64, err error) {
	from := w.Expected + 1
	to := min(w.Expected+int64(len(w.events)), st.last)
	var old []identity
	for revision := from; revision <= to; revision++ {
		e, known := d.ids.at(place{w.stream, revision})
		if !known && old == nil { // it is older than the held ones, so it is committed and in Postgres
			if old, err = d.lookups.identitiesAt(ctx, w.stream, from, to); err != nil {
				return 0, 0, err
			}
		}
		if !known && matched < len(old) {
			e = old[matched]
		}
		if e.id != w.events[matched].ID {
			break
		}
		matched, position = matched+1, e.position
	}
	return matched, position, nil
}

func (d *decider) appendEvents(w *Write, st, other *state, softDeleted bool) Outcome {
	out := Outcome{Kind: Written}
	for _, e := range w.events {
		st.last++
		out.Position = d.addRecord(w.stream, st.last, e).Position
	}
	out.Revision = st.last
	switch {
	case !IsMetaStream(w.stream) && softDeleted:
		d.undelete(companion(w.stream), other, other.meta.raw, st.last+1-int64(len(w.events)))
	case IsMetaStream(w.stream) && len(w.events) > 0:
		// Metadata for a deleted stream revives it too.
		latest := w.events[len(w.events)-1]
		revive := st.meta.deleted()
		st.meta = parseMetadata(latest.JSON, latest.Data)
		if revive {
			d.undelete(w.stream, st, latest.Data, other.last+1)
		}
	}
	if len(w.events) == 0 {
		out.Position = d.head // as far as the log reaches with this answer
	}
	return out
}

func (d *decider) undelete(metaStream string, meta *state, raw []byte, from int64) {
	if body, ok := undeleted(raw, from); ok {
		d.writeMetadata(metaStream, meta, body)
	}
}

func (d *decider) writeMetadata(metaStream string, meta *state, body []byte) Outcome {
	meta.last++
	r := d.addRecord(metaStream, meta.last, Proposed{ID: uuid.New(), JSON: true, Type: typeMetadata, Data: body})
	meta.meta = parseMetadata(true, body)
	return Outcome{Kind: Written, Revision: meta.last, Position: r.Position}
}

func (d *decider) addRecord(stream string, revision int64, e Proposed) *Record {
	d.head++
	r := &Record{
		Position: d.head, Revision: revision, Created: d.group.created,
		ID: e.ID, JSON: e.JSON, Stream: stream, Type: e.Type, Data: e.Data, Metadata: e.Metadata,
	}
	d.group.records = append(d.group.records, r)
	d.ids.add(placed{e.ID, place{stream, revision}})
	return r
}
