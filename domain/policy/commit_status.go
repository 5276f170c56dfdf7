package policy

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// CommitStatuses is what commit statuses ask of the commands.
type CommitStatuses interface {
	TellCommit(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
}

// CommitTeller sets commit statuses. Each firing waits for a code host: they have places
// of their own, and an account has a few of them.
type CommitTeller struct{ Statuses CommitStatuses }

// Pool implements Pooled.
func (CommitTeller) Pool() Pool {
	return Pool{Name: "commit statuses", Places: 16, PerAccount: 4, Within: 30 * time.Second}
}

// Kind implements Policy.
func (CommitTeller) Kind() string { return "commit_status" }

// Handles implements Rule.
func (CommitTeller) Handles() []string {
	return domain.TypesOf(&job.CommitStatusRequested{}, &job.Completed{}, &job.Cancelled{}, &job.Failed{})
}

// React implements Rule: the request sets the timer, and so does the end of a job with a
// request. The end is the later event, so it is told even if the first telling failed.
func (p CommitTeller) React(r domain.Recorded) []Change {
	tells := false
	switch e := r.Event.(type) {
	case *job.CommitStatusRequested:
		if e.Jobs[0] != r.StreamID() {
			return nil // the first of the jobs tells for all
		}
		return []Change{now(p.Kind(), r, r.Meta.AccountID)}
	case *job.Completed:
		tells = e.CommitStatus
	case *job.Cancelled:
		tells = e.CommitStatus
	case *job.Failed:
		tells = e.CommitStatus
	}
	if !tells {
		return nil
	}
	change := now(p.Kind(), r, r.Meta.AccountID)
	change.First = false
	return []Change{change}
}

// Fire implements Policy.
func (p CommitTeller) Fire(ctx context.Context, t Timer) error {
	_, err := p.Statuses.TellCommit(ctx, cause(t), t.Key)
	return err
}
