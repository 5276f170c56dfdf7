package command

import (
	"context"
	"fmt"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// PlayJob has a robot checker claim, check and complete a sandbox job. Items
// that are not named pass. Playing it again answers the first report.
func (s *Service) PlayJob(
	ctx context.Context, cause Cause, jobID string, results []PlayResult, summary string,
) (job.Completed, domain.Position, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return job.Completed{}, domain.Position{}, err
	}
	report, written, err := repository.Execute(ctx, s.jobs, cause, domain.JobStream(jobID),
		func(st job.State, report *job.Completed) ([]domain.Event, error) {
			if !st.Exists || st.AccountID != cause.AccountID {
				return nil, domain.NotFound("job")
			}
			var items []job.ReportItem
			if st.Report == nil && !st.NeedsChecklist() { // else the decision knows without
				var err error
				if items, err = played(st.Items, results); err != nil {
					return nil, err
				}
			}
			events, err := job.DecideRobotComplete(st, job.RobotCompletion{
				Robot: job.Player, ReportID: domain.DeriveID(cause.CommandID, "report").String(),
				Summary: summary, Items: items, At: now,
			})
			if err != nil {
				return nil, err
			}
			if st.Report != nil {
				*report = *st.Report
			}
			for _, e := range events {
				if done, ok := e.(*job.Completed); ok {
					*report = *done
				}
			}
			return events, nil
		})
	return report, written.Position, err
}

// played writes the robot's verdicts on the list. A name that is an item's id
// is not looked for among the keys.
func played(list []job.Item, results []PlayResult) ([]job.ReportItem, error) {
	items := make([]job.ReportItem, len(list))
	byID, byKey := make(map[string]int, len(list)), make(map[string]int, len(list))
	for i, item := range list {
		items[i] = job.ReportItem{Item: item, Status: job.ItemPass}
		byID[item.ID], byKey[item.Key] = i, i
	}
	var wrong []domain.Detail
	named := make(map[int]bool, len(results))
	for n, r := range results {
		path := fmt.Sprintf("results[%d].item", n)
		i, known := byID[r.Item]
		if !known {
			i, known = byKey[r.Item]
		}
		switch {
		case !known:
			wrong = append(wrong, domain.Detail{Path: path, Message: "is no item of the job's checklist"})
			continue
		case named[i]:
			wrong = append(wrong, domain.Detail{Path: path, Message: "is named twice"})
			continue
		}
		named[i] = true
		items[i].Status, items[i].Note, items[i].Reason = r.Status, r.Note, r.Reason
		if r.Status == job.ItemSkip && r.Reason == "" {
			items[i].Reason = "blocked"
		}
		if r.Severity != "" {
			items[i].Severity = r.Severity
		}
	}
	if len(wrong) > 0 {
		return nil, domain.Invalid(wrong...)
	}
	return items, nil
}
