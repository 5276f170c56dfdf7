package eventstore

import (
	"errors"
	"fmt"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

// The connection is cut again and again while a stream is read.
func TestABrokenReadGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	n, direct := setup(t)
	const total = 2000
	var events []domain.NewEvent
	for i := range total {
		events = append(events, note(fmt.Sprint(i)))
	}
	_, err := direct.Append(t.Context(), "job-1", domain.NoStream, events)
	must.NoError(t, err)
	p := newProxy(t, n.socket)
	c := connect(t, p.socket, defaultLimits)
	seen := 0
	err = c.Load(t.Context(), "job-1", 0, func(r domain.Recorded) error {
		if noteOf(r) != fmt.Sprint(seen) || r.Revision != uint64(seen) {
			return fmt.Errorf("event %d is %q at %d", seen, noteOf(r), r.Revision)
		}
		if seen%500 == 0 {
			p.budget.Store(32 << 10)
		}
		seen++
		return nil
	})
	if err != nil || seen != total {
		t.Errorf("saw %d, %v", seen, err)
	}
}

func TestAReaderCanStop(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	grow(t, c, "job-1", 0, 5)
	enough := errors.New("enough")
	seen := 0
	err := c.Load(t.Context(), "job-1", 1, func(r domain.Recorded) error {
		if seen++; seen == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || seen != 2 {
		t.Errorf("saw %d, %v", seen, err)
	}
}

func TestPagesOfTheLogFollowOnEachOther(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	grow(t, c, "job-1", 0, 10)
	put(t, c, "$$job-1", "$metadata", `{}`, ``)
	grow(t, c, "job-1", 10, 5)
	for _, size := range []int{1, 3, 15, 16, 17, 1000} {
		var (
			at    domain.Position
			seen  []string
			start = true
		)
		for end := false; !end; start = false {
			events, next, last, err := c.ReadAll(t.Context(), at, start, size, nil)
			must.NoError(t, err)
			if len(events) > size {
				t.Errorf("a page of %d has %d events", size, len(events))
			}
			for _, r := range events {
				seen = append(seen, noteOf(r))
			}
			at, end = next, last
		}
		if len(seen) != 15 || at.Commit != 16 {
			t.Errorf("pages of %d: %d events up to %s", size, len(seen), at)
		}
		for i, got := range seen {
			if got != fmt.Sprintf("job-1@%d", i) {
				t.Errorf("pages of %d: event %d is %q", size, i, got)
			}
		}
	}
}
