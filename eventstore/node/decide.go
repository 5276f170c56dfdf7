package node

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Expected revisions below zero, numbered as in the original.
const (
	expectNoStream     = -1
	expectAny          = -2
	expectStreamExists = -4
)

type operation int

const (
	opAppend operation = iota
	opDelete
	opTombstone
)

func (o operation) String() string {
	return [...]string{"Append", "Delete", "Tombstone"}[o]
}

// proposed is an event on its way into the log.
type proposed struct {
	id       uuid.UUID
	json     bool
	kind     string
	data     []byte
	metadata []byte
}

// write is one request to the writer. done has room for the one outcome.
type write struct {
	ctx      context.Context
	op       operation
	stream   string
	expected int64
	events   []proposed
	limit    int // of an append's data, in bytes
	data     int // bytes of data so far
	size     int // bytes in memory, roughly
	done     chan outcome
}

type outcomeKind int

const (
	// written: the events are in the log, now or since an earlier attempt.
	written outcomeKind = iota
	wrongVersion
	deleted
	// failed: err tells why; what is in the log is unknown.
	failed
)

// outcome answers one write. revision is the stream's last revision after a
// success and its current one on a wrong version; position is zero if the
// write had no event.
type outcome struct {
	kind     outcomeKind
	revision int64
	position int64
	err      error
}

// decider turns writes into the next group. It runs the streams' states ahead
// of what is committed: each write sees the ones before it.
type decider struct {
	states  *states
	lookups *lookups
	head    int64
	created int64
	group   *group
}

// group is what commits together: records to insert, and the writes to answer
// after that, each with its outcome.
type group struct {
	records  []*record
	members  []*write
	outcomes []outcome
	bytes    int
	created  int64

	// absent are streams that the group was decided on the belief of having no event,
	// proved whether that was true: else nothing was written and nobody answered.
	absent []string
	proved chan bool
}

// believe lets the next batch be decided as if these streams had no event.
func (d *decider) believe(absent []string) {
	d.group.absent, d.group.proved = absent, make(chan bool, 1)
	for _, name := range absent {
		d.states.held.Add(name, &state{last: noStream})
	}
}

// takeBack undoes the decision of a group that was not written, the last one. What it
// touched is looked up again.
func (d *decider) takeBack(g *group) []*write {
	d.head = g.records[0].position - 1
	for _, w := range g.members {
		d.states.held.Remove(w.stream)
		d.states.held.Remove(companion(w.stream))
	}
	return g.members
}

func (g *group) full() bool {
	return len(g.records)+len(g.members) >= groupLength || g.bytes >= groupBytes
}

// refuse answers writes without an outcome.
func refuse(writes []*write, err error) {
	for _, w := range writes {
		w.done <- outcome{kind: failed, err: err}
	}
}

// take adds a batch of writes to the group; the states they need are there.
// After an error no member of the group has an outcome.
func (d *decider) take(ctx context.Context, batch []*write, committed int64) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	d.group.members = append(d.group.members, batch...)
	if d.group.created == 0 {
		// Creation times never run backwards, whatever the clock does.
		d.created = max(d.created, time.Now().UnixMicro())
		d.group.created = d.created
	}
	for _, w := range batch {
		out, err := d.decide(ctx, w)
		if err != nil {
			return err
		}
		d.group.outcomes = append(d.group.outcomes, out)
		d.group.bytes += w.size
		d.states.get(w.stream).trim(committed)
		d.states.get(companion(w.stream)).trim(committed)
	}
	return nil
}

func (d *decider) decide(ctx context.Context, w *write) (outcome, error) {
	st, other := d.states.get(w.stream), d.states.get(companion(w.stream))
	if st.last == tombstoned || isMetaStream(w.stream) && other.last == tombstoned {
		return outcome{kind: deleted}, nil
	}
	softDeleted := !isMetaStream(w.stream) && other.meta.deleted()
	settled, out, err := d.check(ctx, w, st, other, softDeleted)
	if err != nil || settled {
		return out, err
	}
	switch w.op {
	case opDelete:
		if st.last == noStream && other.last == noStream {
			return outcome{kind: wrongVersion, revision: noStream}, nil
		}
		return d.writeMetadata(companion(w.stream), other, deletedMetadata), nil
	case opTombstone:
		r := d.add(w.stream, tombstoned, proposed{id: uuid.New(), kind: typeStreamDeleted})
		st.last, st.recent = tombstoned, nil
		return outcome{kind: written, revision: tombstoned, position: r.position}, nil
	default:
		return d.append(w, st, other, softDeleted), nil
	}
}

// check is the original's rule of expected revisions and idempotency. settled
// means the outcome is final; otherwise the write goes ahead.
func (d *decider) check(ctx context.Context, w *write, st, other *state, softDeleted bool) (settled bool, out outcome, err error) {
	wrong := outcome{kind: wrongVersion, revision: st.last}
	anew := w.expected == expectNoStream && softDeleted // a deleted stream may be created anew
	switch {
	case w.expected == expectStreamExists && softDeleted:
		return true, outcome{kind: deleted}, nil
	case w.expected == expectStreamExists && st.last == noStream && (isMetaStream(w.stream) || other.last == noStream):
		return true, wrong, nil
	case w.expected == expectAny, w.expected == expectStreamExists:
		settled, out = repeatOfRecent(w.events, st)
		return settled, out, nil
	case w.expected > st.last:
		return true, wrong, nil
	case w.expected == st.last:
		return false, outcome{}, nil
	case len(w.events) == 0 && (w.op == opAppend || !anew):
		return true, wrong, nil
	}
	matched, last, err := d.repeatOfPlaced(ctx, w, st)
	switch {
	case err != nil:
		return false, outcome{}, err
	case matched == len(w.events) && matched > 0:
		return true, outcome{kind: written, revision: w.expected + int64(matched), position: last}, nil
	case matched == 0 && anew:
		return false, outcome{}, nil
	}
	return true, wrong, nil
}

// repeatOfRecent recognises a resend without an expected revision by the ids
// still remembered. Half a repeat is a conflict.
func repeatOfRecent(events []proposed, st *state) (settled bool, out outcome) {
	for i, e := range events {
		found, revision, ok := st.find(e.id)
		switch {
		case !ok && i == 0:
			return false, outcome{}
		case !ok:
			return true, outcome{kind: wrongVersion, revision: st.last}
		}
		out = outcome{kind: written, revision: revision, position: found.position}
	}
	return len(events) > 0, out
}

// repeatOfPlaced counts how many of the events, from the first on, already
// stand at the places the expected revision gives them.
func (d *decider) repeatOfPlaced(ctx context.Context, w *write, st *state) (matched int, position int64, err error) {
	if len(w.events) == 0 {
		return 0, 0, nil
	}
	from := w.expected + 1
	to := min(w.expected+int64(len(w.events)), st.last)
	places, known := st.at(from, to)
	if !known {
		// Older than what is remembered, so committed and to be found there.
		if places, err = d.lookups.placed(ctx, w.stream, from, to); err != nil {
			return 0, 0, err
		}
	}
	for i, place := range places {
		if place.id != w.events[i].id {
			break
		}
		matched, position = i+1, place.position
	}
	return matched, position, nil
}

func (d *decider) append(w *write, st, other *state, softDeleted bool) outcome {
	out := outcome{kind: written}
	for _, e := range w.events {
		r := d.add(w.stream, st.last+1, e)
		st.append(e.id, r.position)
		out.position = r.position
	}
	out.revision = st.last
	if !isMetaStream(w.stream) {
		if softDeleted {
			d.undelete(companion(w.stream), other, other.meta.raw, st.last+1-int64(len(w.events)))
		}
		if len(w.events) == 0 {
			out.position = d.head // as far as the log reaches with this answer
		}
		return out
	}
	if len(w.events) == 0 {
		out.position = d.head
		return out
	}
	// Metadata for a deleted stream revives it too.
	latest := w.events[len(w.events)-1]
	revive := st.meta.deleted()
	st.meta = parseMetadata(latest.json, latest.data)
	if revive {
		d.undelete(w.stream, st, latest.data, other.last+1)
	}
	return out
}

func (d *decider) undelete(metaStream string, meta *state, raw []byte, from int64) {
	if body, ok := undeleted(raw, from); ok {
		d.writeMetadata(metaStream, meta, body)
	}
}

func (d *decider) writeMetadata(metaStream string, meta *state, body []byte) outcome {
	e := proposed{id: uuid.New(), json: true, kind: typeMetadata, data: body}
	r := d.add(metaStream, meta.last+1, e)
	meta.append(e.id, r.position)
	meta.meta = parseMetadata(true, body)
	return outcome{kind: written, revision: meta.last, position: r.position}
}

func (d *decider) add(stream string, revision int64, e proposed) *record {
	d.head++
	r := &record{
		position: d.head, revision: revision, created: d.group.created,
		id: e.id, json: e.json, stream: stream, kind: e.kind, data: e.data, metadata: e.metadata,
	}
	d.group.records = append(d.group.records, r)
	return r
}
