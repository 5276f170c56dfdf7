package httpapi

import (
	"context"
	"net/http"
	"time"

	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

type advancedClock struct {
	Now             timestamp `json:"now"`
	OffsetSeconds   int64     `json:"offsetSeconds"`
	AdvancedSeconds int64     `json:"advancedSeconds"`
}

// advanceClock is POST /v1/sandbox/clock/advance. What gets due by it happens
// within a second of the answer. The time is the whole account's.
func (a *API) advanceClock(r *request) (answer, error) {
	switch {
	case !r.caller.sandbox:
		return answer{}, account.ErrNoSandbox
	case r.caller.projectID != "":
		return answer{}, errOtherProject
	}
	var p problems
	o := r.object(&p)
	limit := int(account.MaxAdvance / time.Second)
	seconds, ok := o.integer("seconds")
	if o.fields != nil && (!ok || seconds < 1 || seconds > limit) {
		o.wrong("seconds", "must be a whole number from 1 to %d", limit)
	}
	if err := p.err(); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.commands.AdvanceClock(ctx, cause, time.Duration(seconds)*time.Second)
		return a.done(ctx, r, out.Position, err, http.StatusOK, advancedClock{
			Now: timestamp(out.Now), OffsetSeconds: int64(out.Ahead / time.Second), AdvancedSeconds: int64(seconds),
		})
	})
}

// playJob is POST /v1/sandbox/jobs/:id/play: a robot checker does the job.
func (a *API) playJob(r *request) (answer, error) {
	if !r.caller.sandbox {
		return answer{}, account.ErrNoSandbox
	}
	j, err := a.ownJob(r)
	var p problems
	o := r.optionalObject(&p)
	var results []command.PlayResult
	for _, c := range o.objects("results", maxItems) {
		results = append(results, c.playResult())
	}
	summary := o.optional("summary", maxSummary)
	if err := refusedFor(err, p.err()); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		report, at, err := a.commands.PlayJob(ctx, cause, j.ID, results, summary)
		return a.done(ctx, r, at, err, http.StatusOK, completedOf(j.ID, report))
	})
}

// playResult reads what the robot says of one item. A skip without a reason was
// blocked.
func (o object) playResult() command.PlayResult {
	in := command.PlayResult{
		Item:     o.required("item", maxItemKey),
		Status:   job.ItemStatus(o.verdict("status", job.ItemPass, job.ItemFail, job.ItemSkip)),
		Reason:   o.oneOf("reason", "", job.SkipReasons()...),
		Note:     o.optional("note", maxNote),
		Severity: o.severity(""),
	}
	if in.Status != job.ItemSkip && in.Reason != "" {
		o.wrong("reason", "only a skip has a reason")
	}
	return in
}
