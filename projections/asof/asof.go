// Package asof answers what the read models showed at an earlier place of the
// log. It folds the events up to there with the read models' own folds, and
// keeps nothing.
package asof

import (
	"context"
	"errors"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
	"humanqa/projections/credits"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
)

// Place is where to look back to: the last event of that position, or, without
// one, everything that happened at the moment or before.
type Place struct {
	Position domain.Position
	Moment   time.Time
}

// passed says that the event came later. In a stream everything behind it did.
func (p Place) passed(r domain.Recorded) bool {
	if p.Position != (domain.Position{}) {
		return r.Position.Compare(p.Position) > 0
	}
	return r.Meta.Time.After(p.Moment)
}

// Reads reads the log. Who asks must be known to own what they name.
type Reads struct {
	log  domain.Log
	jobs *jobs.Reads
}

// NewReads reads a log; the read model says which jobs a project has.
func NewReads(log domain.Log, of *jobs.Reads) *Reads { return &Reads{log: log, jobs: of} }

// Job is the job as it was, and its report if it had one; NotFound before its
// submission.
func (q *Reads) Job(ctx context.Context, jobID string, at Place) (jobs.Job, *jobs.Report, error) {
	events, err := q.stream(ctx, domain.JobStream(jobID), at)
	if err != nil {
		return jobs.Job{}, nil, err
	}
	return jobs.Fold(jobID, events)
}

// Project is the project's history as it was; NotFound before its creation.
func (q *Reads) Project(ctx context.Context, accountID, projectID string, at Place) (history.Project, error) {
	events, err := q.stream(ctx, domain.ProjectStream(projectID), at)
	if err != nil {
		return history.Project{}, err
	}
	ids, err := q.jobs.OfProject(ctx, accountID, projectID)
	if err != nil {
		return history.Project{}, err
	}
	for _, r := range events {
		if e, ok := r.Event.(*project.RegressionsAttached); ok {
			ids = append(ids, e.JobIDs...)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		of, err := q.stream(ctx, domain.JobStream(id), at)
		if err != nil {
			return history.Project{}, err
		}
		events = append(events, of...)
	}
	slices.SortFunc(events, func(a, b domain.Recorded) int { return a.Position.Compare(b.Position) })
	return history.Fold(projectID, events)
}

// Balance is what the account had. At a position credits expire by the time of
// the ledger's newest event up to there.
func (q *Reads) Balance(ctx context.Context, accountID string, at Place) (credits.Balance, error) {
	events, err := q.stream(ctx, domain.CreditsStream(accountID), at)
	if err != nil {
		return credits.Balance{}, err
	}
	now := at.Moment
	if n := len(events); n > 0 && now.IsZero() {
		now = events[n-1].Meta.Time
	}
	return credits.Fold(accountID, events, now), nil
}

var errPassed = errors.New("the rest came later")

func (q *Reads) stream(ctx context.Context, stream string, at Place) (events []domain.Recorded, err error) {
	err = q.log.Load(ctx, stream, 0, func(r domain.Recorded) error {
		if at.passed(r) {
			return errPassed
		}
		events = append(events, r)
		return nil
	})
	if errors.Is(err, errPassed) {
		err = nil
	}
	return events, err
}
