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
// milliseconds.
func (u Until) holds(w *readmodel.Where) string {
	if u.Position != (domain.Position{}) {
		return fmt.Sprintf("(e.commit_position, e.prepare_position) <= (%s, %s)", w.Param(u.Position.Commit), w.Param(u.Position.Prepare))
	}
	return "e.time <= " + w.Param(u.Moment)
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
