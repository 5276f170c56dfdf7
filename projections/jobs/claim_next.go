package jobs

import (
	"context"
	"errors"
	"time"

	"humanqa/domain"
)

// claimAttempts bounds how often the next job of the queue is tried when other
// checkers are faster.
const claimAttempts = 8

// ClaimNext calls claim with the jobs of the checker's queue in turn, until one succeeds;
// found is false if none does. It skips a job that is gone: the read model nominates, the
// log decides.
func (q *Reads) ClaimNext(
	ctx context.Context, checkerID string, now time.Time, claim func(jobID string) error,
) (found bool, err error) {
	var gone []string
	for range claimAttempts {
		next, ok, errNext := q.NextForChecker(ctx, checkerID, now, gone)
		if errNext != nil || !ok {
			return false, errNext
		}
		if err = claim(next); err == nil || !jobGone(err) {
			return err == nil, err
		}
		gone = append(gone, next)
	}
	return false, err
}

// jobGone says that only this job cannot be claimed. Another error concerns the whole
// queue, such as too many claims of the checker.
func jobGone(err error) bool {
	var refused *domain.Error
	if !errors.As(err, &refused) {
		return false
	}
	_, full := refused.Extras["claimedJobs"]
	return !full && (refused.Kind == domain.KindConflict || refused.Kind == domain.KindNotFound)
}
