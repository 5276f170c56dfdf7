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

// ClaimNext has claim try the jobs of the checker's queue, the first one first,
// until it has one; found is false when there is none. A job that is gone is
// skipped: the read model nominates, the log decides.
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

// jobGone says that only this job is out of reach, not the whole queue because
// of the claims the checker holds already.
func jobGone(err error) bool {
	var refused *domain.Error
	if !errors.As(err, &refused) {
		return false
	}
	_, full := refused.Extras["claimedJobs"]
	return !full && (refused.Kind == domain.KindConflict || refused.Kind == domain.KindNotFound)
}
