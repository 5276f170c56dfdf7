package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
)

const stopLine = `
UPDATE webhooks.checkpoint
SET status = 'stopped', failure_category = $2, failure_detail = $3, failure_stream = $4, failure_type = $5,
	failure_commit = $6, failure_prepare = $7, failure_attempts = failure_attempts + 1, updated_at = now()
WHERE name = 'webhooks' AND owner = $1`

// stop stops the line at an event, until an operator has it retried or skipped.
func (s *Subscriber) stop(ctx context.Context, p poison) error {
	_, err := s.db.ExecContext(ctx, stopLine, s.owner, p.category, clean(p.err.Error()), p.stream, p.eventType,
		int64(p.position.Commit), int64(p.position.Prepare))
	if err != nil {
		return fmt.Errorf("stop the webhook subscriber: %w", err)
	}
	s.log.WithError(p.err).WithFields(map[string]any{
		"category": p.category, "stream": p.stream, "type": p.eventType, "position": p.position.String(),
	}).Error("the webhook subscriber stopped; retry or skip the event")
	s.read, s.at = s.committed, time.Time{} // the lease is renewed at once, which sees the new status
	return nil
}

// SubscriberStatus is how far the subscriber is, and why it stands if it does.
type SubscriberStatus struct {
	Started  bool // false: nothing read yet
	Position domain.Position
	Live     bool
	Events   int64
	Failure  *SubscriberFailure // of a stopped one
	Updated  time.Time
}

// SubscriberFailure is the event that the subscriber stopped at.
type SubscriberFailure struct {
	Category string // decode, payload
	Detail   string
	Stream   string
	Type     string
	Position domain.Position
	Attempts int
}

// ReadSubscriberStatus tells how far the subscriber is.
func ReadSubscriberStatus(ctx context.Context, db sqlx.QueryerContext) (SubscriberStatus, error) {
	var r struct {
		Started         bool      `db:"started"`
		Commit          int64     `db:"commit_position"`
		Prepare         int64     `db:"prepare_position"`
		Status          string    `db:"status"`
		Category        string    `db:"failure_category"`
		Detail          string    `db:"failure_detail"`
		Stream          string    `db:"failure_stream"`
		Type            string    `db:"failure_type"`
		FailureCommit   int64     `db:"failure_commit"`
		FailurePrepare  int64     `db:"failure_prepare"`
		FailureAttempts int       `db:"failure_attempts"`
		Events          int64     `db:"events"`
		Updated         time.Time `db:"updated_at"`
	}
	err := sqlx.GetContext(ctx, db, &r, `
SELECT started, commit_position, prepare_position, status, failure_category, failure_detail, failure_stream,
	failure_type, failure_commit, failure_prepare, failure_attempts, events, updated_at
FROM webhooks.checkpoint
WHERE name = 'webhooks'`)
	if err != nil {
		return SubscriberStatus{}, fmt.Errorf("read the webhook subscriber's checkpoint: %w", err)
	}
	s := SubscriberStatus{
		Started: r.Started, Position: position(r.Commit, r.Prepare), Live: r.Status == "live",
		Events: r.Events, Updated: r.Updated,
	}
	if !s.Live {
		s.Failure = &SubscriberFailure{
			Category: r.Category, Detail: r.Detail, Stream: r.Stream, Type: r.Type,
			Position: position(r.FailureCommit, r.FailurePrepare), Attempts: r.FailureAttempts,
		}
	}
	return s, nil
}

func position(commit, prepare int64) domain.Position {
	return domain.Position{Commit: uint64(commit), Prepare: uint64(prepare)}
}

// RetrySubscriber has a stopped subscriber try the event again.
func RetrySubscriber(ctx context.Context, db *sqlx.DB) error {
	return changeStopped(ctx, db, `
UPDATE webhooks.checkpoint
SET status = 'live', updated_at = now()
WHERE name = 'webhooks' AND status = 'stopped'`)
}

// SkipSubscriber has a stopped subscriber pass over the event it stopped at:
// no endpoint ever hears of it. Who did so and why is kept.
func SkipSubscriber(ctx context.Context, db *sqlx.DB, actor, reason string) error {
	return changeStopped(ctx, db, `
WITH skipped AS (
	UPDATE webhooks.checkpoint
	SET status = 'live', started = true, commit_position = failure_commit, prepare_position = failure_prepare,
		failure_attempts = 0, updated_at = now()
	WHERE name = 'webhooks' AND status = 'stopped'
	RETURNING failure_commit, failure_prepare, failure_stream, failure_type, failure_detail
)
INSERT INTO webhooks.skips (commit_position, prepare_position, stream, type, detail, actor, reason)
SELECT failure_commit, failure_prepare, failure_stream, failure_type, failure_detail, $1, $2
FROM skipped`, actor, reason)
}

func changeStopped(ctx context.Context, db *sqlx.DB, query string, args ...any) error {
	done, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("change the webhook subscriber: %w", err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return fmt.Errorf("change the webhook subscriber: %w", err)
	}
	if n == 0 {
		return domain.Conflict("the webhook subscriber is not stopped")
	}
	return nil
}
