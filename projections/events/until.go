package events

import (
	"fmt"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/projections/readmodel"
)

// Until is the end of a look at the log: the event at a position, or, without a position,
// all events at a moment or before.
type Until struct {
	Position domain.Position
	Moment   time.Time
	// Created is Moment by the account's own clock, or later. No job of that moment was
	// created later. A sandbox's clock is ahead of the log's times.
	Created time.Time
}

// Passed says that the event came after Until. In a stream, all later events did, too.
func (u Until) Passed(r domain.Recorded) bool { return u.PassedAt(r.Position, r.Meta.Time) }

// PassedAt is Passed of an event of that position and time.
func (u Until) PassedAt(position domain.Position, at time.Time) bool {
	if u.Position != (domain.Position{}) {
		return position.Compare(u.Position) > 0
	}
	return at.After(u.Moment)
}

// holds is the condition that a row e of account_events is not passed. Its times are in
// milliseconds. Postgres would round the moment's last nanosecond up to the next one.
func (u Until) holds(w *readmodel.Where) string {
	if u.Position != (domain.Position{}) {
		return fmt.Sprintf("(e.commit_position, e.prepare_position) <= (%s, %s)", w.Param(u.Position.Commit), w.Param(u.Position.Prepare))
	}
	return "e.time <= " + w.Param(u.Moment.Truncate(time.Millisecond))
}

// Began is a condition that spares a look at jobs that came later: it holds for every job
// that JoinThen finds created. id and created are expressions for the job's id and for a
// time from its creation on.
func (u Until) Began(w *readmodel.Where, accountID, id, created string) string {
	if u.Position == (domain.Position{}) {
		return created + " <= " + w.Param(u.Created)
	}
	return fmt.Sprintf("%s IN (SELECT substr(stream, %d) FROM readmodel.event_streams WHERE account_id = %s AND position <= %s)",
		id, len(domain.JobStreams)+1, w.Param(accountID), w.Param(u.Position.Commit))
}

// JoinThen joins the past state of jobs, as past. It has created and analysed (null: not
// yet), and the status of ended jobs (null: not yet). id is the expression for a job's
// id. An end absorbs. So for a job that had ended by then, a read model shows the same as
// then, except for ratings, recordings and the analysis.
func (u Until) JoinThen(w *readmodel.Where, id string) string {
	var ends []string
	for _, end := range []struct {
		event  domain.Event
		status job.Status
	}{
		{(*job.Completed)(nil), job.StatusCompleted}, {(*job.Cancelled)(nil), job.StatusCancelled}, {(*job.Failed)(nil), job.StatusFailed},
	} {
		ends = append(ends, fmt.Sprintf("WHEN '%s' THEN '%s'", end.event.EventType(), end.status))
	}
	return fmt.Sprintf(`
CROSS JOIN LATERAL (
    SELECT MAX(CASE e.type %s END) AS status,
           BOOL_OR(e.type = '%s') AS created,
           BOOL_OR(e.type = '%s') AS analysed
    FROM readmodel.account_events e
    WHERE e.stream = '%s' || %s
      AND %s) past`,
		strings.Join(ends, " "), (*job.Created)(nil).EventType(), (*job.AIReportReady)(nil).EventType(),
		domain.JobStreams, id, u.holds(w))
}
