package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// The AI writes outside of any decision, because it takes long and the job goes on
// meanwhile. When the text is there, the decision runs on the newest state.

// WriteChecklist gives a job that was submitted without one its checklist.
func (s *Service) WriteChecklist(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	w, err := s.Job(ctx, jobID)
	if err != nil || !w.NeedsChecklist() {
		return domain.Position{}, err
	}
	items, by, err := s.composeChecklist(ctx, w.Submission, w.Regressions)
	if err != nil {
		return domain.Position{}, err
	}
	if items, err = s.keepKeys(ctx, w.AccountID, w.ProjectID, items); err != nil {
		return domain.Position{}, err
	}
	list := checklist(w.Regressions, items)
	return s.onJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideWriteChecklist(st, list, by, now)
	})
}

// AnalyseJob has the AI analyse a completed job's report, once. The analysis has the
// job's own id, so two simultaneous analyses are one.
func (s *Service) AnalyseJob(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	of, err := s.Job(ctx, jobID)
	if err != nil || of.Report == nil || of.AIReport != nil || !of.ErasedAt.IsZero() {
		return domain.Position{}, err
	}
	report, err := s.AI.Analyse(ctx, AnalysisBrief{Submission: of.Submission, Report: *of.Report})
	if err != nil {
		return domain.Position{}, domain.Unavailable(fmt.Errorf("analyse job %s: %w", jobID, err))
	}
	report.ID = domain.CommandIDFor("ai-report", jobID).String()
	// The counts are facts, and the analyst cannot change them.
	report.PassCount, report.FailCount, report.SkipCount = of.Report.PassCount, of.Report.FailCount, of.Report.SkipCount
	return s.onJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		report := report
		report.At = now
		return job.DecideAnalysed(st, report)
	})
}

// ReviewJob has the AI do an AI review, and completes it.
func (s *Service) ReviewJob(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	of, err := s.Job(ctx, jobID)
	if err != nil || !of.Type.Automatic() || of.Status != job.StatusPending {
		return domain.Position{}, err
	}
	review, err := s.AI.Review(ctx, of.URL)
	if err != nil {
		return domain.Position{}, domain.Unavailable(fmt.Errorf("review job %s: %w", jobID, err))
	}
	items := reviewed(of.Items, review.Items)
	return s.onJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideRobotComplete(st, job.Reviewer, job.Completed{
			ReportID: domain.DeriveID(cause.CommandID, "report").String(),
			Summary:  review.Summary, Items: items, At: now,
		})
	})
}

// reviewed is the report of a review: the submitted list with the verdicts that the
// review has on it, then the review's other items. Items that the review cannot judge are
// skipped.
func reviewed(list []job.Item, found []job.ReportItem) []job.ReportItem {
	items := make([]job.ReportItem, 0, len(list)+len(found))
	found = slices.Clone(found)
	for _, i := range list {
		item := job.ReportItem{
			Item: i, Status: job.ItemSkip, Reason: "not_applicable", Note: "An AI review cannot judge this.",
		}
		if n := slices.IndexFunc(found, func(f job.ReportItem) bool { return f.Key == i.Key }); n >= 0 {
			item = found[n]
			item.Item = i
			found = slices.Delete(found, n, n+1)
		}
		items = append(items, item)
	}
	for _, f := range found {
		f.ID = fmt.Sprintf("item-%d", len(items)+1)
		items = append(items, f)
	}
	return items
}

// onJob runs a decision on a job, at its account's time.
func (s *Service) onJob(
	ctx context.Context, cause Cause, jobID string, decide func(job.State, time.Time) ([]domain.Event, error),
) (domain.Position, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return domain.Position{}, err
	}
	return repository.Decide(ctx, s.Jobs, cause, domain.JobStream(jobID), func(st job.State) ([]domain.Event, error) {
		return decide(st, now)
	})
}
