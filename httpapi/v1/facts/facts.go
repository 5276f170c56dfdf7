// Package facts answers GET /v1/activity, which names the author of each fact of an account.
package facts

import (
	"net/http"
	"strconv"
	"strings"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/projections/activity"
)

// activityBody is a page of GET /v1/activity, the newest fact first.
type activityBody struct {
	Facts      []fact `json:"facts"`
	Limit      int    `json:"limit"`
	Offset     int    `json:"offset"`
	NextOffset *int   `json:"nextOffset"` // null on the last page
}

type fact struct {
	ID        string         `json:"id"`
	At        wire.Timestamp `json:"at"`
	Kind      string         `json:"kind"` // the event's type in the log
	By        string         `json:"by"`   // as activity.Fact has it
	ProjectID *string        `json:"projectId"`
	JobID     *string        `json:"jobId"`
	Detail    *string        `json:"detail"`
}

// maxOffset is far beyond any account, and within what Postgres can count.
const maxOffset = 1 << 31

// Activity answers GET /v1/activity: the facts of the account and their authors.
func Activity(r *wire.Request, reads *activity.Reads) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	out := activityBody{Limit: q.Integer("limit", 20, 1, 100), Offset: q.Integer("offset", 0, 0, maxOffset)}
	f := activity.Filter{
		ProjectID: q.Text("projectId"), Author: q.Text("by"), Kind: q.OneOf("kind", activity.Kinds()),
		Limit: out.Limit + 1, Offset: out.Offset,
	}
	if id := q.Text("jobId"); id != "" {
		f.Stream = domain.JobStream(id)
	}
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	facts, err := reads.List(r.Context(), r.Caller.AccountID, f)
	if len(facts) > out.Limit {
		next := out.Offset + out.Limit
		facts, out.NextOffset = facts[:out.Limit], &next
	}
	out.Facts = wire.List(facts, factOf)
	return wire.ReplyUnless(err, http.StatusOK, out)
}

func factOf(f activity.Titled) fact {
	out := fact{
		ID: strconv.FormatInt(f.Position, 10), At: wire.Timestamp(f.At), Kind: f.Kind, By: f.Author,
		ProjectID: wire.OrNull(f.ProjectID), Detail: wire.OrNull(f.Detail),
	}
	if id, is := strings.CutPrefix(f.Stream, domain.JobStreams); is {
		out.JobID = &id
	}
	return out
}
