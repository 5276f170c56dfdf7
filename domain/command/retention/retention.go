// Package retention holds the commands that set how long evidence is kept, place and
// release holds, and expire evidence (decisions, "What is kept").
package retention

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command/settings"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/repository"
	"humanqa/domain/retention"
)

// Retention runs the commands. It may be used by many goroutines.
type Retention struct{ *settings.Commands }

// New makes Retention.
func New(c *settings.Commands) *Retention { return &Retention{c} }

// SetAccountRetention changes how long the evidence of the cause's account is kept, and
// gives the settings after it.
func (s *Retention) SetAccountRetention(
	ctx context.Context, cause domain.Cause, change retention.Change,
) (keep retention.Keep, at domain.Position, err error) {
	return settings.Execute(ctx, s.Commands, s.Accounts, cause, domain.AccountStream(cause.AccountID),
		func(st account.State, now time.Time) ([]domain.Event, error) {
			return account.DecideRetention(st, change, now)
		},
		func(st account.State) retention.Keep { return st.Keep })
}

// AccountRetention gives the account's settings and its hold; nil: none is in place.
func (s *Retention) AccountRetention(ctx context.Context, accountID string) (retention.Keep, *retention.Hold, error) {
	st, err := s.Account(ctx, accountID)
	return st.Keep, st.Hold, err
}

// Held says that a hold of the account, or of the project if one is named, keeps evidence.
func (s *Retention) Held(ctx context.Context, accountID, projectID string) (bool, error) {
	_, hold, err := s.AccountRetention(ctx, accountID)
	if err != nil || hold != nil || projectID == "" {
		return hold != nil, err
	}
	p, err := s.Project(ctx, projectID)
	return p.Hold != nil, err
}

// Subject is a part of the cause's account: all of it, a project, or a job.
type Subject struct {
	Kind string // retention.OfAccount, OfProject, OfJob
	ID   string
}

// Stream is the subject's stream.
func (s Subject) Stream() string {
	switch s.Kind {
	case retention.OfProject:
		return domain.ProjectStream(s.ID)
	case retention.OfJob:
		return domain.JobStream(s.ID)
	}
	return domain.AccountStream(s.ID)
}

// PlaceHold keeps the subject's evidence, whatever the settings say. The same hold again
// is a repeat.
func (s *Retention) PlaceHold(ctx context.Context, cause domain.Cause, of Subject, reason string, operator bool) (domain.Position, error) {
	return s.orderHold(ctx, cause, of, retention.Order{HoldPlaced: retention.HoldPlaced{Reason: reason, Operator: operator}})
}

// ReleaseHold ends the subject's hold; without a hold nothing changes.
func (s *Retention) ReleaseHold(
	ctx context.Context, cause domain.Cause, of Subject, reason string, operator bool,
) (domain.Position, error) {
	return s.orderHold(ctx, cause, of, retention.Order{
		HoldPlaced: retention.HoldPlaced{Reason: reason, Operator: operator}, Release: true,
	})
}

func (s *Retention) orderHold(ctx context.Context, cause domain.Cause, of Subject, order retention.Order) (at domain.Position, err error) {
	if order.At, err = s.AccountTime(ctx, cause); err != nil {
		return at, err
	}
	switch of.Kind {
	case retention.OfAccount:
		if of.ID != cause.AccountID {
			return at, domain.NotFound("account")
		}
		return repository.Decide(ctx, s.Accounts, cause, of.Stream(), func(st account.State) ([]domain.Event, error) {
			return account.DecideHold(st, order)
		})
	case retention.OfProject:
		_, at, err = s.OnProject(ctx, cause, of.ID, func(st project.State, _ time.Time) ([]domain.Event, error) {
			return project.DecideHold(st, order)
		})
		return at, err
	case retention.OfJob:
		_, at, err = s.OnJob(ctx, cause, of.ID, func(st job.State, _ time.Time) ([]domain.Event, error) {
			return job.DecideHold(st, order)
		})
		return at, err
	}
	return at, fmt.Errorf("%q has no holds", of.Kind)
}

// Gone is a piece of evidence that is kept no longer.
type Gone struct {
	ID   string
	At   time.Time
	Rule retention.Rule
}

// ExpireEvidence expires those pieces of the job's evidence that are due, by the
// settings, holds and time in the log. It gives the pieces that are gone, also by an
// earlier call. So after a crash between the event and the caller's own record, a repeat
// completes the record.
//
// A hold of the account or the project that is placed at the same moment comes too late
// for this job. A hold of the job itself does not.
func (s *Retention) ExpireEvidence(ctx context.Context, cause domain.Cause, jobID string, pieces []job.Piece) ([]Gone, error) {
	return s.letGo(ctx, cause, jobID, pieces, func(st job.State, keep job.Retention, now time.Time) ([]domain.Event, error) {
		return job.DecideExpire(st, keep, pieces, now)
	})
}

// EraseEvidence expires all of the job's pieces, whatever the settings say, and gives
// those that are gone, as ExpireEvidence does. It keeps them under a hold, and while the
// job has not ended.
func (s *Retention) EraseEvidence(ctx context.Context, cause domain.Cause, jobID string, pieces []job.Piece) ([]Gone, error) {
	return s.letGo(ctx, cause, jobID, pieces, func(st job.State, keep job.Retention, now time.Time) ([]domain.Event, error) {
		return job.DecideEraseEvidence(st, keep.Held, pieces, now)
	})
}

func (s *Retention) letGo(
	ctx context.Context, cause domain.Cause, jobID string, pieces []job.Piece,
	decide func(job.State, job.Retention, time.Time) ([]domain.Event, error),
) ([]Gone, error) {
	of, err := s.Job(ctx, jobID)
	if err != nil {
		return nil, err
	}
	var keep job.Retention
	var hold *retention.Hold
	if keep.Account, hold, err = s.AccountRetention(ctx, of.AccountID); err != nil {
		return nil, err
	}
	keep.Held = hold != nil
	if of.ProjectID != "" {
		p, err := s.Project(ctx, of.ProjectID)
		if err != nil {
			return nil, err
		}
		keep.Project, keep.Held = p.Keep, keep.Held || p.Hold != nil
	}
	// A job does not always say that its account is a sandbox; the account's clock does.
	cause.AccountID, cause.Sandbox = of.AccountID, true
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return nil, err
	}
	cause.Sandbox = of.Sandbox
	st, _, err := repository.Execute(ctx, s.Jobs, cause, domain.JobStream(jobID),
		func(st job.State) ([]domain.Event, error) { return decide(st, keep, now) }, job.State.Clone)
	var gone []Gone
	for _, piece := range pieces {
		if e := st.Expired[piece.ID]; e != nil {
			gone = append(gone, Gone{piece.ID, e.At, e.Rule})
		}
	}
	return gone, err
}
