package v1

import (
	"context"
	"net/http"
	"time"

	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
)

type advancedClock struct {
	Now             wire.Timestamp `json:"now"`
	OffsetSeconds   int64          `json:"offsetSeconds"`
	AdvancedSeconds int64          `json:"advancedSeconds"`
}

// advanceClock is POST /v1/sandbox/clock/advance. Everything that falls due by it happens
// within a second of the answer. The time is the whole account's.
func (a *Handlers) advanceClock(r *wire.Request) (wire.Answer, error) {
	switch {
	case !r.Caller.Sandbox:
		return wire.Answer{}, account.ErrNoSandbox
	case r.Caller.ProjectID != "":
		return wire.Answer{}, ErrOtherProject
	}
	var p wire.Problems
	o := r.Object(&p)
	limit := int(account.MaxAdvance / time.Second)
	seconds, ok := o.Integer("seconds")
	if !o.Broken() && (!ok || seconds < 1 || seconds > limit) {
		o.Wrong("seconds", "must be a whole number from 1 to %d", limit)
	}
	return a.Writer.WriteUnless(p.Err(), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		out, err := a.Commands.AdvanceClock(ctx, cause, time.Duration(seconds)*time.Second)
		return a.Writer.Done(ctx, r, out.Position, err, http.StatusOK, advancedClock{
			Now: wire.Timestamp(out.Now), OffsetSeconds: int64(out.Ahead / time.Second), AdvancedSeconds: int64(seconds),
		})
	})
}

// askedJob is a job that a robot has begun, and its question.
type askedJob struct {
	JobID    string          `json:"jobId"`
	Status   job.Status      `json:"status"`
	Question report.Question `json:"question"`
}

// playJob is POST /v1/sandbox/jobs/:id/play: a robot checker does the job. With a question
// it asks first, and completes the job once the question has ended.
func (a *Handlers) playJob(r *wire.Request) (wire.Answer, error) {
	if !r.Caller.Sandbox {
		return wire.Answer{}, account.ErrNoSandbox
	}
	j, err := a.ownJob(r)
	var p wire.Problems
	o := r.OptionalObject(&p)
	results, summary, question := input.Play(o)
	if err := wire.RefusedFor(err, p.Err()); err != nil {
		return wire.Answer{}, err
	}
	if question != nil {
		return a.Writer.Write(r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
			q, at, err := a.Commands.AskInPlay(ctx, cause, j.ID, *question, results, summary)
			return a.Writer.Done(ctx, r, at, err, http.StatusAccepted, askedJob{j.ID, job.StatusClaimed, report.QuestionOf(q)})
		})
	}
	return a.Writer.Write(r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		done, at, err := a.Commands.PlayJob(ctx, cause, j.ID, results, summary)
		return a.Writer.Done(ctx, r, at, err, http.StatusOK, CompletedOf(j.ID, done))
	})
}

type completedJob struct {
	JobID         string     `json:"jobId"`
	Status        job.Status `json:"status"`
	ReportID      string     `json:"reportId"`
	OverallStatus string     `json:"overallStatus"`
	PassCount     int        `json:"passCount"`
	FailCount     int        `json:"failCount"`
	SkipCount     int        `json:"skipCount"`
}

func CompletedOf(jobID string, done job.Completed) completedJob {
	return completedJob{
		JobID: jobID, Status: job.StatusCompleted, ReportID: done.ReportID, OverallStatus: done.OverallStatus,
		PassCount: done.PassCount, FailCount: done.FailCount, SkipCount: done.SkipCount,
	}
}
