package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// tokenKept is the longest time that a token is kept. A job ends hours before that.
const tokenKept = 24 * time.Hour

// ErrStatusRefused says that a code host refused a commit status for good. The text of the
// error is for the client.
var ErrStatusRefused = errors.New("the code host refused the commit status")

// holdToken keeps the token of a commit status, and gives the request for its jobs; nil:
// there is no commit status. The token is stored before the first job. So a crash in
// between leaves an unused token, which is forgotten by its age, and never a job without
// a token.
func (s *Service) holdToken(
	ctx context.Context, cause Cause, in *CommitStatus, jobIDs []string, at time.Time,
) (*job.CommitStatusRequested, error) {
	if in == nil {
		return nil, nil
	}
	err := s.Tokens.Hold(ctx, cause.AccountID, tokenName(jobIDs), tokenUse(in.CommitStatus), []byte(in.Token), tokenKept)
	if err != nil {
		return nil, err
	}
	return &job.CommitStatusRequested{CommitStatus: in.CommitStatus, Jobs: jobIDs, AccountWide: cause.ProjectID == "", At: at}, nil
}

// tokenName is the name that a token is kept under, by the jobs with one verdict.
func tokenName(jobIDs []string) string { return "commit-status/" + jobIDs[0] }

// tokenUse binds a token: it opens for this status only.
func tokenUse(c job.CommitStatus) string {
	return strings.Join([]string{c.Provider, c.Repository, c.Commit, c.Context}, "\n")
}

// telling is the state of the jobs with one verdict at a commit.
type telling struct {
	request *job.CommitStatusRequested
	ownerID string // the job that records the status
	owner   job.State
	missing bool // a job is neither there nor voided
	parts   []job.CommitPart
}

// TellCommit sets the commit status of a job to the verdict of its jobs. It forgets the
// token once the verdict is set or refused. For a job without a commit status it does
// nothing. After a crash before the event, the repeat sets the same status again.
func (s *Service) TellCommit(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	t, err := s.readTelling(ctx, jobID)
	if err != nil || t.request == nil {
		return domain.Position{}, err
	}
	name := tokenName(t.request.Jobs)
	state, description := job.CommitVerdict(t.parts)
	switch {
	case t.missing && !t.owner.CommitDone() && state != job.CommitPending:
		// The batch is being submitted, or crashed and is about to be settled.
		return domain.Position{}, domain.Unavailable(errors.New("a job of the batch is not there yet"))
	case t.owner.CommitDone(): // a crash may have come before the token was forgotten
		return domain.Position{}, s.Tokens.Forget(ctx, t.owner.AccountID, name)
	case state == t.owner.CommitTold:
		return domain.Position{}, nil
	}
	update := StatusUpdate{State: state, Description: description, JobID: t.ownerID, BatchID: t.owner.BatchID}
	token, err := s.Tokens.Held(ctx, t.owner.AccountID, name, tokenUse(t.request.CommitStatus))
	if err == nil {
		err = s.Statuses.Set(ctx, t.request.CommitStatus, string(token), update)
	}
	reason := ""
	switch {
	case errors.Is(err, domain.ErrShredded), errors.Is(err, domain.ErrUnsealable): // or its row is not the one that was written
		reason = "the token is forgotten"
	case errors.Is(err, ErrStatusRefused):
		reason = err.Error()
	case err != nil:
		return domain.Position{}, domain.Unavailable(err)
	case t.owner.CommitTold == "": // a token that the code host takes may speak for the place
		if err := s.supersede(ctx, cause, t); err != nil {
			return domain.Position{}, err
		}
	}
	at, err := s.onJob(ctx, cause, t.ownerID, func(st job.State, now time.Time) ([]domain.Event, error) {
		if reason != "" {
			return job.DecideAbandonCommit(st, reason, now)
		}
		return job.DecideTellCommit(st, state, now)
	})
	if err == nil && (reason != "" || state != job.CommitPending) {
		err = s.Tokens.Forget(ctx, t.owner.AccountID, name)
	}
	return at, err
}

// readTelling reads the jobs with one verdict as the log has them now.
func (s *Service) readTelling(ctx context.Context, jobID string) (t telling, err error) {
	asked, err := s.Job(ctx, jobID)
	if t.request = asked.CommitStatus; err != nil || t.request == nil {
		return t, err
	}
	for _, id := range t.request.Jobs {
		st, err := s.Job(ctx, id)
		if err != nil {
			return t, err
		}
		if st.Exists && t.ownerID == "" {
			t.ownerID, t.owner = id, st
		}
		t.missing = t.missing || st.Status == ""
		t.parts = append(t.parts, st.CommitPart())
	}
	return t, nil
}

// supersede cancels the untouched jobs of an older submission at the same place, as far as
// the key of the newer one goes. A job that a checker has begun goes on: its credits are
// spent.
func (s *Service) supersede(ctx context.Context, cause Cause, t telling) error {
	if t.request.Ref == "" {
		return nil
	}
	older, err := s.Reads.SamePlace(ctx, t.owner.AccountID, t.request.CommitStatus)
	if err != nil {
		return domain.Unavailable(err)
	}
	for _, id := range older {
		replaced, err := repository.Read(ctx, s.Jobs, domain.JobStream(id), func(st job.State) bool {
			return st.Status == job.StatusPending && st.AccountID == t.owner.AccountID && st.CommitStatus != nil &&
				(t.request.AccountWide || st.ProjectID == t.owner.ProjectID) &&
				st.CommitStatus.SamePlace(t.request.CommitStatus) && st.CommitStatus.Jobs[0] != t.request.Jobs[0] &&
				st.CreatedAt.Before(t.owner.CreatedAt)
		})
		if err != nil {
			return err
		}
		if !replaced {
			continue
		}
		_, err = s.CancelJob(ctx, cause.Step("supersede "+id), id, job.CancelSuperseded)
		if err != nil && !domain.IsKind(err, domain.KindConflict) { // a checker has just begun
			return err
		}
	}
	return nil
}
