package readers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/internal/backoff"
	"humanqa/internal/signature"
	"humanqa/projections/events"
)

// Origin knows which log the feed is of: *binding.Binding.
type Origin interface {
	// Lineage is the lineage that was found last.
	Lineage() origin.Lineage
	// Check looks again.
	Check(ctx context.Context) error
}

// LogHeader names the log and its generation in answers of the feed.
const LogHeader = signature.LogHeader

// lateHead is the time for which a node of a cluster may not know the newest events yet.
const lateHead = time.Second

// Cursors writes the cursors of the feed, and judges those that readers send
// (decisions, "Cursors of events"). Inside the service a cursor has no mark.
type Cursors struct {
	origin Origin // nil: the log is not known
	head   func(context.Context) (domain.Position, error)
	// seen is the furthest end of the log that was found: it spares a reader at the end
	// a look at the log.
	seen atomic.Pointer[domain.Position]
}

// NewCursors judges by the log's lineage and its end; log may be nil.
func NewCursors(log Origin, head func(context.Context) (domain.Position, error)) *Cursors {
	return &Cursors{origin: log, head: head}
}

func (c *Cursors) lineage() origin.Lineage {
	if c.origin == nil {
		return origin.Lineage{}
	}
	return c.origin.Lineage()
}

// Tell is the cursor as readers get it.
func (c *Cursors) Tell(cursor string) string { return events.Marked(cursor, c.lineage().Mark()) }

// Log is the value of LogHeader; empty while the log is not known.
func (c *Cursors) Log() string { return c.lineage().String() }

// Accept gives the place of a reader's cursor. It refuses one of another log, and one
// behind which events are missing. The text is a cursor, or empty.
func (c *Cursors) Accept(ctx context.Context, cursor string) (plain string, err error) {
	at, mark, ok := events.SplitCursor(cursor)
	if !ok {
		return "", nil
	}
	plain = events.CursorAt(at)
	log := c.lineage()
	if mark != "" && log.Generation() > 0 {
		generation, parted, known := log.Parted(mark)
		if !known {
			// Another process may have found a restore that this one does not know of yet.
			if err := c.origin.Check(ctx); err != nil {
				return "", err
			}
			log = c.lineage()
			generation, parted, known = log.Parted(mark)
		}
		switch {
		case !known:
			return "", c.refuse(domain.KindConflict, domain.CodeAnotherLog, "",
				"read the feed from its beginning, without after, into an empty copy: no event of the other log is to be trusted here",
				"the cursor %s is of another log than %s", cursor, log)
		case parted != (domain.Position{}) && at.Compare(parted) >= 0:
			return "", c.refuse(domain.KindConflict, domain.CodeAnotherLog, events.CursorAt(parted),
				fmt.Sprintf("the events behind %s in your copy are not in this log: take them back, and continue with after=%s",
					events.CursorAt(parted), c.Tell(events.CursorAt(parted))),
				"the cursor %s is of generation %d of the log; it was restored from a backup since, and is %s now", cursor, generation, log)
		}
	}
	if at.Compare(log.Gone) < 0 {
		return "", c.refuse(domain.KindGone, domain.CodeCursorGone, events.CursorAt(log.Gone),
			fmt.Sprintf("continue with after=%s; the operator of the service has the archive of what lies before", c.Tell(events.CursorAt(log.Gone))),
			"the cursor %s lies before the events that are kept, which begin behind %s", cursor, events.CursorAt(log.Gone))
	}
	return plain, nil
}

// Place gives the position of a reader's cursor. It refuses those that Accept and Reached
// refuse.
func (c *Cursors) Place(ctx context.Context, cursor string) (at domain.Position, err error) {
	plain, err := c.Accept(ctx, cursor)
	if err == nil {
		err = c.Reached(ctx, plain)
	}
	at, _, _ = events.SplitCursor(plain)
	return at, err
}

// Reached refuses a cursor that lies beyond the log's end. A reader that found nothing
// behind the cursor calls it.
func (c *Cursors) Reached(ctx context.Context, plain string) error {
	at, _, ok := events.SplitCursor(plain)
	if !ok {
		return nil
	}
	for again := false; ; again = true {
		if seen := c.seen.Load(); seen != nil && at.Compare(*seen) <= 0 {
			return nil
		}
		end, err := c.head(ctx)
		if err != nil {
			return fmt.Errorf("read the log's end: %w", err)
		}
		c.seen.Store(&end)
		switch {
		case at.Compare(end) <= 0:
			return nil
		case again:
			return c.refuse(domain.KindConflict, domain.CodeCursorAhead, events.CursorAt(end),
				fmt.Sprintf("check that the cursor is of this service; if the log was restored from a backup, take back what your copy has behind %s, "+
					"and continue with after=%s", events.CursorAt(end), c.Tell(events.CursorAt(end))),
				"the cursor %s lies beyond the end of the log, %s", plain, events.CursorAt(end))
		}
		if err := backoff.Wait(ctx, lateHead); err != nil {
			return err
		}
	}
}

// refuse names the log, and where a reader can continue.
func (c *Cursors) refuse(kind domain.Kind, code domain.Code, next, hint, format string, args ...any) error {
	refusal := &domain.Error{Kind: kind, Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}
	refusal = refusal.With("log", c.Log())
	if next == "" {
		return refusal.With("next", nil)
	}
	return refusal.With("next", c.Tell(next))
}
