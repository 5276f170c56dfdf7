package policy

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// Writers is what the AI's part asks of the commands.
type Writers interface {
	WriteChecklist(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	AnalyseJob(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	ReviewJob(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
}

// writers is what these policies share: they may wait for a model. One account
// leaves some places to others.
type writers struct{}

// Pool implements Pooled.
func (writers) Pool() Pool {
	return Pool{Name: "writers", Places: 16, PerAccount: 12, Within: 2 * time.Minute}
}

// ChecklistWriter writes the list of a job that was submitted without one.
type ChecklistWriter struct {
	writers
	Writers Writers
}

// Kind implements Policy.
func (ChecklistWriter) Kind() string { return "checklist" }

// Handles implements Rule.
func (ChecklistWriter) Handles() []string {
	return append(endsOfJob(), domain.TypesOf(&job.Created{}, &job.ChecklistWritten{})...)
}

// React implements Rule: a job without a list sets the timer, its list or its
// end clears it.
func (p ChecklistWriter) React(r domain.Recorded) []Change {
	if e, ok := r.Event.(*job.Created); ok {
		if e.Type == job.AIReview || len(e.Items) > 0 {
			return nil
		}
		return []Change{now(p.Kind(), r, e.AccountID)}
	}
	return []Change{cleared(p.Kind(), r.StreamID())}
}

// Fire implements Policy.
func (p ChecklistWriter) Fire(ctx context.Context, t Timer) error {
	_, err := p.Writers.WriteChecklist(ctx, cause(t), t.Key)
	return err
}

// Analyst has every report analysed.
type Analyst struct {
	writers
	Writers Writers
}

// Kind implements Policy.
func (Analyst) Kind() string { return "analysis" }

// Handles implements Rule.
func (Analyst) Handles() []string { return domain.TypesOf(&job.Completed{}, &job.AIReportReady{}) }

// React implements Rule: a report sets the timer, its analysis clears it.
func (p Analyst) React(r domain.Recorded) []Change {
	if _, ok := r.Event.(*job.Completed); ok {
		return []Change{now(p.Kind(), r, r.Meta.AccountID)}
	}
	return []Change{cleared(p.Kind(), r.StreamID())}
}

// Fire implements Policy.
func (p Analyst) Fire(ctx context.Context, t Timer) error {
	_, err := p.Writers.AnalyseJob(ctx, cause(t), t.Key)
	return err
}

// Reviewer does the AI reviews, a sandbox's too. Each waits for a stranger's
// page: they have places of their own, and an account has a few of them.
type Reviewer struct {
	Writers Writers
}

// Pool implements Pooled.
func (Reviewer) Pool() Pool {
	return Pool{Name: "reviews", Places: 16, PerAccount: 4, Within: 30 * time.Second}
}

// Kind implements Policy.
func (Reviewer) Kind() string { return "review" }

// Handles implements Rule.
func (Reviewer) Handles() []string { return append(endsOfJob(), domain.TypesOf(&job.Created{})...) }

// React implements Rule: a review that is asked for sets the timer, its end
// clears it.
func (p Reviewer) React(r domain.Recorded) []Change {
	e, ok := r.Event.(*job.Created)
	switch {
	case ok && e.Type == job.AIReview:
		return []Change{now(p.Kind(), r, e.AccountID)}
	case ok:
		return nil
	}
	return []Change{cleared(p.Kind(), r.StreamID())}
}

// Fire implements Policy.
func (p Reviewer) Fire(ctx context.Context, t Timer) error {
	_, err := p.Writers.ReviewJob(ctx, cause(t), t.Key)
	return err
}

// now sets a job's timer for the moment of the event, which happens once.
func now(kind string, r domain.Recorded, accountID string) Change {
	return Change{First: true, Timer: Timer{
		Kind: kind, Key: r.StreamID(), AccountID: accountID, DueAt: r.Meta.Time, WallClock: true,
	}}
}
