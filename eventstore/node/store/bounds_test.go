package store

import (
	"testing"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// A state in flight must not be evicted: while a group commits, the next one is decided.
func TestTheStatesOfTwoGroupsAreHeld(t *testing.T) {
	t.Parallel()
	w := &writer{queue: make(chan *Write, 2*groupLength)}
	arrive := func(n int) {
		for range n {
			w.queue <- NewWrite(t.Context(), OpAppend, "s", ExpectAny)
		}
	}
	g := &group{}
	for arrived := groupLength - 1; !g.full(); arrived = groupLength {
		arrive(arrived)
		g.members = append(g.members, w.collectBatch(<-w.queue, groupLength-g.length())...)
	}
	if states := 2 * len(g.members); 2*states > statesHeld {
		t.Fatalf("a group may need %d states, and %d are held", states, statesHeld)
	}
}

// A slow reader holds two pages.
func TestAPageIsBoundedByTheBytesOfItsTypesToo(t *testing.T) {
	t.Parallel()
	db, err := openDB(pgtest.NewDSN(t), 1, nil)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, db.Close()) })
	const events, length = 100, 64 << 10
	_, err = db.ExecContext(t.Context(), `INSERT INTO eventlog.events
		SELECT i, i - 1, 0, gen_random_uuid(), true, 's', repeat('t', $1), '', '' FROM generate_series(1, $2::bigint) AS i`, length, events)
	must.NoError(t, err)
	p, err := preparePages(t.Context(), db)
	must.NoError(t, err)
	for from := int64(1); from <= events; {
		page, err := p.ReadAll(t.Context(), false, from, events, PageRows)
		must.NoError(t, err)
		if got := len(page.Events); got > pageBytes/length || page.Complete != (from+int64(got) > events) {
			t.Fatalf("a page of %d events from %d on, complete %t", got, from, page.Complete)
		}
		from = page.Last() + 1
	}
}
