package asof

import (
	"context"
	"time"

	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/internal/pgpool"
	"humanqa/projections/credits"
	"humanqa/projections/events"
	"humanqa/projections/ledger"
	"humanqa/projections/readmodel"
)

// The fold for a balance begins this many events before the place, and four times as many
// if no close is among them. A book is closed after some 250 events.
const bookLength = 400

// Balance is the account's balance as it was. At a position, credits expire by the time
// of the ledger's newest event up to there.
func (q *Reads) Balance(ctx context.Context, accountID string, at events.Until) (credits.Balance, error) {
	length, err := q.Ledger(ctx, accountID, at)
	if err != nil {
		return credits.Balance{}, err
	}
	for back := uint64(bookLength); ; back *= 4 {
		from := length - min(back, length)
		past, now := credits.NewPast(accountID), at.Moment
		err := q.eachFrom(ctx, domain.CreditsStream(accountID), from, at, func(r domain.Recorded) error {
			past.Fold(r.Event)
			if at.Moment.IsZero() {
				now = r.Meta.Time
			}
			return nil
		})
		if err != nil || from == 0 || past.Whole() {
			return past.Balance(now), err
		}
	}
}

// Ledger is the length of the account's ledger then: the revision of the first event
// after the place. The read models tell about where that is, and the log decides: the read
// begins an event before, or further back if that one came later.
func (q *Reads) Ledger(ctx context.Context, accountID string, at events.Until) (revision uint64, err error) {
	moment, err := q.reads.Events.Moment(ctx, accountID, at)
	if err != nil {
		return 0, err
	}
	from, err := q.reads.Ledger.Length(ctx, accountID, moment)
	for back := uint64(1); err == nil; back *= 4 {
		from -= min(back, from)
		revision = from
		err = q.eachFrom(ctx, domain.CreditsStream(accountID), from, at, func(domain.Recorded) error {
			revision++
			return nil
		})
		if revision > from || from == 0 {
			break
		}
	}
	return revision, err
}

// Now is the account's time at that place: at a position that of the ledger's
// newest event up to there.
func (q *Reads) Now(ctx context.Context, accountID string, length uint64, at events.Until) (now time.Time, err error) {
	if at.Position == (domain.Position{}) || length == 0 {
		return at.Moment, nil
	}
	err = q.eachFrom(ctx, domain.CreditsStream(accountID), length-1, at, func(r domain.Recorded) error {
		now = r.Meta.Time
		return nil
	})
	return now, err
}

// Titles removes the titles from lines of jobs that did not exist yet: a debit stands in
// the ledger before its job.
func (q *Reads) Titles(ctx context.Context, lines []ledger.Line, at events.Until) error {
	var ids []string
	for _, l := range lines {
		if l.JobTitle != "" {
			ids = append(ids, l.JobID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	w := &readmodel.Where{Args: []any{pq.Array(ids)}}
	query := "SELECT j.id FROM unnest($1::text[]) AS j (id)" + at.JoinThen(w, "j.id") + " WHERE past.created"
	came, err := pgpool.Set(ctx, q.db, "which jobs there were", query, w.Args...)
	if err != nil {
		return err
	}
	for i := range lines {
		if !came[lines[i].JobID] {
			lines[i].JobTitle = ""
		}
	}
	return nil
}
