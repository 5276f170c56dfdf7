// Package asof answers queries as of an earlier place of the log. It folds the events up
// to there with the read models' own folds, stream by stream as they are read. Its only
// memory is the answer. The read models name the streams. The feed of events knows the
// beginning and the end of every job, so a list reads only the streams of its page.
package asof

import (
	"context"
	"errors"
	"iter"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/projections"
	"humanqa/projections/commitstatuses"
	"humanqa/projections/events"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
	"humanqa/projections/readmodel"
)

// Reads reads the log. The caller has checked that the account owns the subject of the
// query, and that the feed of events shows the place (Supervisor.CatchUp).
type Reads struct {
	log   domain.Log
	db    *sqlx.DB
	reads *projections.Reads
}

// NewReads reads a log; the read models name its streams.
func NewReads(log domain.Log, db *sqlx.DB, reads *projections.Reads) *Reads {
	return &Reads{log: log, db: readmodel.Pool(db), reads: reads}
}

var errPassed = errors.New("the rest came later")

// each passes the events of a stream up to at.
func (q *Reads) each(ctx context.Context, stream string, at events.Until, see func(domain.Recorded) error) error {
	return q.eachFrom(ctx, stream, 0, at, see)
}

// eachFrom begins at a revision.
func (q *Reads) eachFrom(ctx context.Context, stream string, from uint64, at events.Until, see func(domain.Recorded) error) error {
	err := q.log.Load(ctx, stream, from, func(r domain.Recorded) error {
		if at.Passed(r) {
			return errPassed
		}
		return see(r)
	})
	if errors.Is(err, errPassed) {
		return nil
	}
	return err
}

// Job is the job as it was.
func (q *Reads) Job(ctx context.Context, jobID string, at events.Until) (*jobs.Past, error) {
	return q.job(ctx, jobID, false, at)
}

func (q *Reads) job(ctx context.Context, jobID string, sandbox bool, at events.Until) (*jobs.Past, error) {
	past := jobs.NewPast(jobID, sandbox)
	return past, q.each(ctx, domain.JobStream(jobID), at, past.Fold)
}

// CommitStatus is the commit status of a job as it was; found is false without one. One
// of the jobs with the same verdict records the status.
func (q *Reads) CommitStatus(ctx context.Context, jobID string, at events.Until) (s commitstatuses.Status, found bool, err error) {
	past := commitstatuses.NewPast(jobID)
	see := func(r domain.Recorded) error { past.Fold(r); return nil }
	if err := q.each(ctx, domain.JobStream(jobID), at, see); err != nil {
		return s, false, err
	}
	for _, other := range past.Others() {
		if err := q.each(ctx, domain.JobStream(other), at, see); err != nil {
			return s, false, err
		}
	}
	s, found = past.Status()
	return s, found, nil
}

// History is the project's history as it was; NotFound before its creation. The project's
// stream is merged with the events of its jobs from the feed. Full reports are read only
// for the two latest jobs.
func (q *Reads) History(ctx context.Context, accountID, projectID string, at events.Until) (history.Project, error) {
	past := history.NewPast(projectID)
	next, stop := iter.Pull2(q.reads.Events.OfProject(ctx, accountID, projectID, at))
	defer stop()
	told, err, more := next()
	jobsUpTo := func(r *domain.Recorded) error {
		for ; more && err == nil && (r == nil || told.Recorded.Position.Compare(r.Position) < 0); told, err, more = next() {
			switch e := told.Recorded.Event.(type) {
			case *job.Created:
				e.ProjectID = projectID
			case *job.Completed:
				e.Items = nil
			}
			past.Fold(told.Recorded)
		}
		return err
	}
	err = q.each(ctx, domain.ProjectStream(projectID), at, func(r domain.Recorded) error {
		if err := jobsUpTo(&r); err != nil {
			return err
		}
		past.Fold(r)
		return nil
	})
	if err == nil {
		err = jobsUpTo(nil)
	}
	if err == nil {
		err = q.verdicts(ctx, past, at)
	}
	if err != nil {
		return history.Project{}, err
	}
	return past.Project()
}

// verdicts adds the facts that only the jobs' own streams have. These are the verdicts of
// the two latest tests on each item, and the jobs with fixes that never came.
func (q *Reads) verdicts(ctx context.Context, past *history.Past, at events.Until) error {
	latest := past.Latest()
	for i := len(latest) - 1; i >= 0; i-- {
		var st job.State // with its overturned verdicts
		err := q.each(ctx, domain.JobStream(latest[i]), at, func(r domain.Recorded) error {
			st = job.Evolve(st, r.Event)
			return nil
		})
		if err != nil {
			return err
		}
		past.Verdicts(latest[i], st.Report)
	}
	for _, id := range past.Unsettled() {
		err := q.each(ctx, domain.JobStream(id), at, func(r domain.Recorded) error {
			if _, ok := r.Event.(*job.Voided); ok {
				past.Fold(r)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
