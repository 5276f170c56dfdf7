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
	type waiting struct {
		brief       ChecklistBrief
		projectID   string
		regressions []job.Item
	}
	w, err := repository.Read(ctx, s.Jobs, domain.JobStream(jobID), func(st job.State) *waiting {
		if !st.NeedsChecklist() {
			return nil
		}
		return &waiting{
			brief: ChecklistBrief{
				Type: st.Type, URL: st.URL, Title: st.Title, Description: st.Description, Feature: st.Feature,
				AccountID: st.AccountID,
			},
			projectID: st.ProjectID, regressions: st.Regressions,
		}
	})
	if err != nil || w == nil {
		return domain.Position{}, err
	}
	items, by, err := s.composeChecklist(ctx, w.brief, w.projectID)
	if err != nil {
		return domain.Position{}, err
	}
	if items, err = s.keepKeys(ctx, w.brief.AccountID, w.projectID, items); err != nil {
		return domain.Position{}, err
	}
	list := checklist(w.regressions, items)
	return s.onJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideWriteChecklist(st, list, by, now)
	})
}

// AnalyseJob has the AI analyse a completed job's report, once. The analysis has the
// job's own id, so two simultaneous analyses are one.
func (s *Service) AnalyseJob(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	brief, err := repository.Read(ctx, s.Jobs, domain.JobStream(jobID), func(st job.State) *AnalysisBrief {
		if st.Report == nil || st.AIReport != nil || !st.ErasedAt.IsZero() {
			return nil
		}
		return &AnalysisBrief{
			AccountID: st.AccountID, Type: st.Type, URL: st.URL, Title: st.Title,
			Description: st.Description, Feature: st.Feature, Target: st.Target, Report: *st.Report,
		}
	})
	if err != nil || brief == nil {
		return domain.Position{}, err
	}
	report, err := s.AI.Analyse(ctx, *brief)
	if err != nil {
		return domain.Position{}, domain.Unavailable(fmt.Errorf("analyse job %s: %w", jobID, err))
	}
	report.ID = domain.CommandIDFor("ai-report", jobID).String()
	// The counts are facts, and the analyst cannot change them.
	report.PassCount, report.FailCount, report.SkipCount = brief.Report.PassCount, brief.Report.FailCount, brief.Report.SkipCount
	return s.onJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		report := report
		report.At = now
		return job.DecideAnalysed(st, report)
	})
}

// ReviewJob has the AI do an AI review, and completes it.
func (s *Service) ReviewJob(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	type waiting struct {
		url  string
		list []job.Item
	}
	w, err := repository.Read(ctx, s.Jobs, domain.JobStream(jobID), func(st job.State) *waiting {
		if !st.Type.Automatic() || st.Status != job.StatusPending {
			return nil
		}
		return &waiting{url: st.URL, list: st.Items}
	})
	if err != nil || w == nil {
		return domain.Position{}, err
	}
	review, err := s.AI.Review(ctx, w.url)
	if err != nil {
		return domain.Position{}, domain.Unavailable(fmt.Errorf("review job %s: %w", jobID, err))
	}
	items := reviewed(w.list, review.Items)
	return s.onJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideRobotComplete(st, job.RobotCompletion{
			Robot: job.Reviewer, ReportID: domain.DeriveID(cause.CommandID, "report").String(),
			Summary: review.Summary, Items: items, At: now,
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
