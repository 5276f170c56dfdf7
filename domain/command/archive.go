package command

import (
	"context"
	"fmt"
	"math"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/session"
)

// A submission asks its project before it is charged, and an archive cancels what waits behind
// its own event. A submission that asked just before that event may bring its job later.
// SettleArchive finds the job a minute after the event: by then it has come, or its charge is
// settled. A job that comes even later, or goes back to the queue, ends with its SLA.

// CancelledAtOnce bounds the tests that one request cancels: each has two commits.
const CancelledAtOnce = 200

// ArchiveProject puts a project away, or restores it. An archive cancels at most so many of the
// tests that wait, and SettleArchive the others. A restore brings none of them back.
func (s *Service) ArchiveProject(
	ctx context.Context, cause Cause, projectID string, archive bool, atMost int,
) (after project.State, out CancelledJobs, err error) {
	after, at, err := s.OnProject(ctx, cause, projectID, func(st project.State, now time.Time) ([]domain.Event, error) {
		by := project.Ordered{At: now}
		by.UserID, by.KeyID = cause.RequestedBy()
		return project.DecideArchive(st, archive, by)
	})
	if err == nil && archive {
		out, err = s.cancelWaiting(ctx, cause, projectID, atMost)
	}
	out.Position = out.Position.Max(at)
	return after, out, err
}

// SettleArchive cancels the tests that the archive of their project has left waiting.
func (s *Service) SettleArchive(ctx context.Context, cause Cause, projectID string) (domain.Position, error) {
	out, err := s.cancelWaiting(ctx, cause, projectID, math.MaxInt32)
	return out.Position, err
}

func (s *Service) cancelWaiting(ctx context.Context, cause Cause, projectID string, limit int) (CancelledJobs, error) {
	ids, err := s.Reads.Waiting(ctx, cause.AccountID, projectID, limit)
	if err != nil {
		return CancelledJobs{}, domain.Unavailable(fmt.Errorf("waiting tests of project %s: %w", projectID, err))
	}
	return s.cancelArchived(ctx, cause, projectID, ids)
}

// cancelArchived cancels those of the jobs that wait, if their project is archived. The jobs
// came before the project is read here, so none of them came after a restore.
func (s *Service) cancelArchived(ctx context.Context, cause Cause, projectID string, jobIDs []string) (CancelledJobs, error) {
	p, err := s.Project(ctx, projectID)
	if err != nil || p.ArchivedAt == nil {
		return CancelledJobs{}, err
	}
	out, err := s.CancelJobs(ctx, cause, jobIDs, job.CancelArchived) // no slots of sessions
	for _, id := range jobIDs {
		if err == nil {
			err = s.cancelLobby(ctx, cause, id, &out)
		}
	}
	return out, err
}

// cancelLobby cancels the session of a job, if there is one and it has not begun.
func (s *Service) cancelLobby(ctx context.Context, cause Cause, jobID string, all *CancelledJobs) error {
	j, err := s.Job(ctx, jobID)
	if err != nil || j.SessionID == "" {
		return err
	}
	st, err := s.Session(ctx, j.SessionID)
	if err != nil || st.Status != session.StatusLobby {
		return err
	}
	out, err := s.CancelSession(ctx, cause.Step("cancel session "+j.SessionID), j.SessionID)
	switch {
	case domain.IsKind(err, domain.KindConflict): // it has ended
		return nil
	case err != nil:
		return err
	}
	all.add(CancelledJobs{len(st.Slots), out.CreditsRefunded, out.CreditsExpired, out.Position})
	return nil
}
