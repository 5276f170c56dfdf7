package policy

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// commitStatuses sets commit statuses. Each firing waits for a code host, so these
// policies have a pool of their own, and one account has only a few of its places.
var commitStatuses = []Policy{{
	Kind:    "commit_status",
	Handles: domain.TypesOf(&job.CommitStatusRequested{}, &job.Completed{}, &job.Cancelled{}, &job.Failed{}),
	Pool:    Pool{Name: "commit statuses", Places: 16, PerAccount: 4, Within: 30 * time.Second, Rest: 5 * time.Minute},
	react:   watchCommit,
	issue:   Commands.TellCommit,
}}

// The request sets the timer, and so does the end of a job with a request. The end is the
// later event, so its timer fires even if the first firing failed.
func watchCommit(r domain.Recorded) []Change {
	if e, asked := r.Event.(*job.CommitStatusRequested); asked {
		if e.Jobs[0] != r.StreamID() {
			return nil // the first job sets the status for all
		}
		return setFirst(after(r, r.StreamID(), 0))
	}
	if _, _, tells := endOf(r.Event); !tells {
		return nil
	}
	return set(after(r, r.StreamID(), 0))
}
