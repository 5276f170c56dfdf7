package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
	"humanqa/domain/session"
)

// After a while the policy gives up a submission that was cut off between its charge and
// its job. It closes the job's stream (job.voided) and refunds the charge. The same
// command, sent again, starts a new round: a command that derives from it, with a job of
// its own. A given-up submission stays given up, so every repeat of the command goes
// through the same rounds. At most one job of all rounds lives and is charged.

// maxRounds bounds the rounds of one submission. The policy waits longer than a round
// takes.
const maxRounds = 5

// again runs a submission of one job, and runs it anew if its job was given up.
func again[R any](ctx context.Context, s *Service, cause Cause, submit func(Cause) (R, error)) (R, error) {
	return anew(cause, submit, func(cause Cause) (Cause, bool, error) {
		givenUp, err := s.giveBack(ctx, cause, ownJob(cause))
		return cause.Step("again"), givenUp, err
	})
}

// anew runs a submission. If that was given up, anew runs it again as the derived
// command.
func anew[R any](
	cause Cause, submit func(Cause) (R, error), follow func(Cause) (next Cause, givenUp bool, err error),
) (out R, err error) {
	for range maxRounds {
		out, err = submit(cause)
		if !domain.IsKind(err, domain.KindConflict) {
			return out, err
		}
		next, givenUp, failed := follow(cause)
		switch {
		case failed != nil:
			return out, failed
		case !givenUp:
			return out, err
		}
		cause = next
	}
	return out, err
}

// ownJob is the job that a submission leads to.
func ownJob(cause Cause) string { return domain.DeriveID(cause.CommandID, "job").String() }

// giveBack says whether the job was given up. It also makes sure of the refund, so that
// the new charge does not wait for the policy.
func (s *Service) giveBack(ctx context.Context, cause Cause, jobID string) (givenUp bool, err error) {
	givenUp, err = repository.Read(ctx, s.Jobs, domain.JobStream(jobID), func(st job.State) bool {
		return st.Status == job.StatusVoided && st.AccountID == cause.AccountID
	})
	if err != nil || !givenUp {
		return false, err
	}
	_, err = s.RefundJob(ctx, cause.Step("give back "+jobID), jobID, "job_never_created")
	if domain.IsKind(err, domain.KindNotFound) { // it was never charged
		err = nil
	}
	return true, err
}

// sessionGivenUp reports whether the command's session was given up, and refunds its
// slots. Such a session never began, or it was abandoned or expired before a slot's job
// came. A session that its client cancelled was not given up.
func (s *Service) sessionGivenUp(ctx context.Context, cause Cause, slots int) (bool, error) {
	sessionID, jobIDs := ownSession(cause, slots)
	st, err := s.Session(ctx, sessionID)
	if err != nil {
		return false, err
	}
	switch st.Status {
	case session.StatusExpired:
	case session.StatusCancelled:
		if abandoned, err := s.wasAbandoned(ctx, cause, sessionID); err != nil || !abandoned {
			return false, err
		}
	default:
		if st.Exists {
			return false, nil
		}
		err := s.stillCharged(ctx, cause, jobIDs)
		if errors.Is(err, errGivenBack) {
			return true, nil
		}
		return false, err
	}
	if _, err := s.settleSlots(ctx, cause.Step("give back"), st, true); err != nil {
		return false, err
	}
	return s.anyVoided(ctx, jobIDs)
}

// ownSession is the session that a command leads to, and its slots' jobs.
func ownSession(cause Cause, slots int) (sessionID string, jobIDs []string) {
	for i := range slots {
		jobIDs = append(jobIDs, domain.DeriveID(cause.CommandID, fmt.Sprintf("slot %d", i+1)).String())
	}
	return domain.DeriveID(cause.CommandID, "session").String(), jobIDs
}

// batchAgain replaces the given-up jobs of a batch by new jobs, and gives the command
// that charges for them. found is false if no job was given up.
func (s *Service) batchAgain(ctx context.Context, cause Cause, jobIDs []string) (charging Cause, found bool, err error) {
	for i, id := range jobIDs {
		givenUp, err := s.giveBack(ctx, cause, id)
		if err != nil {
			return cause, false, err
		}
		if givenUp {
			jobIDs[i], found = domain.DeriveID(uuid.MustParse(id), "again").String(), true
		}
	}
	return cause.Step("charge " + strings.Join(jobIDs, " ")), found, nil
}
