package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// Record gives the account of the job that the claimant continues to record. It is a
// sign of life. A checker without the claim is refused as everywhere. But after the
// report its checker may still send the rest of the recording.
func (s *Service) Record(ctx context.Context, cause Cause, claim Claim) (accountID string, err error) {
	accountID, _, err = claimant(ctx, s, cause, claim, func(st job.State, accountID *string) ([]domain.Event, error) {
		*accountID = st.AccountID
		return job.DecideRecord(st, claim.CheckerID, claim.Token, s.Now())
	})
	return accountID, err
}

// HoldsClaim says that the claim is alive.
func (s *Service) HoldsClaim(ctx context.Context, claim Claim) (bool, error) {
	return repository.Read(ctx, s.jobs, domain.JobStream(claim.JobID), func(st job.State) bool {
		return st.Holds(claim.CheckerID, claim.Token)
	})
}

// AttachRecording takes a recording that is whole into the job.
func (s *Service) AttachRecording(ctx context.Context, cause Cause, jobID string, r job.Recording) (domain.Position, error) {
	_, written, err := repository.Execute(ctx, s.jobs, cause, domain.JobStream(jobID),
		func(st job.State, _ *repository.None) ([]domain.Event, error) {
			return job.DecideAttachRecording(st, r, s.Now())
		})
	return written.Position, err
}

// MarkMoment marks the moment of the test that was so long ago, under an id that derives
// from the command.
// In a session's slot it is marked for all in the room, too, as far as that still
// takes marks; a repeat makes up for a crash between the two.
func (s *Service) MarkMoment(ctx context.Context, cause Cause, claim Claim, label string, ago time.Duration) (domain.Position, error) {
	now := s.Now()
	m := job.Moment{ID: domain.DeriveID(cause.CommandID, "moment").String(), Label: label, At: now.Add(-ago)}
	type marked struct {
		sessionID string
		ago       time.Duration
	}
	in, at, err := claimant(ctx, s, cause, claim, func(st job.State, in *marked) ([]domain.Event, error) {
		events, err := job.DecideMarkMoment(st, claim.CheckerID, claim.Token, m, now)
		*in = marked{sessionID: st.SessionID}
		for _, e := range events {
			if moment, ok := e.(*job.MomentMarked); ok {
				in.ago = now.Sub(moment.At)
			}
		}
		return events, err
	})
	if err != nil || in.sessionID == "" {
		return at, err
	}
	shared, err := s.MarkSlot(ctx, cause.Step("room"), claim.CheckerID, in.sessionID, label, in.ago)
	if domain.IsKind(err, domain.KindConflict) {
		err = nil // it is full, or over: the moment stays the slot's own
	}
	return at.Max(shared), err
}
