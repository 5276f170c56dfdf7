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

// PlayJob has a robot checker claim, check and complete a sandbox job. Items
// that are not named pass. Playing it again answers the first report.
func (s *Service) PlayJob(
	ctx context.Context, cause Cause, jobID string, results []PlayResult, summary string,
) (job.Completed, domain.Position, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return job.Completed{}, domain.Position{}, err
	}
	return repository.Execute(ctx, s.Jobs, cause, domain.JobStream(jobID),
		func(st job.State, report *job.Completed) ([]domain.Event, error) {
			if !st.Exists || st.AccountID != cause.AccountID {
				return nil, domain.NotFound("job")
			}
			items, err := played(st, results)
			if err != nil {
				return nil, err
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
			if done, ok := domain.Last[*job.Completed](events); ok {
				*report = *done
			}
			return events, nil
		})
}

// PlayQuestion is a question that a robot asks in the middle of its work.
type PlayQuestion struct {
	Item string // an item's id or key; empty: about the whole test
	Kind string // one of job.QuestionKinds
	Text string
}

// AskInPlay has a robot checker claim a sandbox job and ask the client. The robot
// continues automatically, as in PlayJob, once the question has an answer or its time is
// over.
func (s *Service) AskInPlay(
	ctx context.Context, cause Cause, jobID string, in PlayQuestion, results []PlayResult, summary string,
) (job.Question, domain.Position, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return job.Question{}, domain.Position{}, err
	}
	wait, err := s.QuestionWait(ctx, jobID)
	if err != nil {
		return job.Question{}, domain.Position{}, err
	}
	ask := job.Ask{
		QuestionID: domain.DeriveID(cause.CommandID, "question").String(), Kind: in.Kind, Text: in.Text, Wait: wait, At: now,
	}
	return repository.Execute(ctx, s.Jobs, cause, domain.JobStream(jobID),
		func(st job.State, q *job.Question) ([]domain.Event, error) {
			if !st.Exists || st.AccountID != cause.AccountID {
				return nil, domain.NotFound("job")
			}
			ask := ask
			items, err := played(st, results)
			if err != nil {
				return nil, err
			}
			if in.Item != "" && items != nil {
				at := slices.IndexFunc(st.Items, func(i job.Item) bool { return i.ID == in.Item || i.Key == in.Item })
				if at < 0 {
					return nil, domain.Invalid(domain.Detail{Path: "question.item", Message: "is no item of the job's checklist"})
				}
				ask.ItemID = st.Items[at].ID
			}
			events, err := job.DecideRobotAsk(st, ask, job.Script{Items: items, Summary: summary})
			if err != nil {
				return nil, err
			}
			if open, is := st.OpenQuestion(); is { // the same text again is the same question
				*q = open
			}
			for _, known := range st.Questions {
				if known.ID == ask.QuestionID {
					*q = known
				}
			}
			if asked, ok := domain.Last[*job.QuestionAsked](events); ok {
				*q = asked.Asked()
			}
			return events, nil
		})
}

// GoOnPlaying has the robot complete a job after its question has ended.
func (s *Service) GoOnPlaying(ctx context.Context, cause Cause, jobID string) (domain.Position, error) {
	return s.onJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideRobotGoOn(st, domain.DeriveID(cause.CommandID, "report").String(), now)
	})
}

// played writes the robot's verdicts on the list. A name that is an item's id is not
// compared with the keys.
func played(st job.State, results []PlayResult) ([]job.ReportItem, error) {
	if st.Report != nil || st.NeedsChecklist() { // the decision needs no verdicts then
		return nil, nil
	}
	list := st.Items
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
