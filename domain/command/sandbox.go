package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// PlayJob has a robot checker claim, check and complete a sandbox job. Items
// that are not named pass. Playing it again answers the first report.
func (s *Service) PlayJob(
	ctx context.Context, cause Cause, jobID string, results []PlayResult, summary string,
) (job.Completed, domain.Position, error) {
	st, at, err := s.OnJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		items, err := played(st, results)
		if err != nil {
			return nil, err
		}
		return job.DecideRobotComplete(st, job.Player, job.Completed{
			ReportID: domain.DeriveID(cause.CommandID, "report").String(),
			Summary:  summary, Items: items, At: now,
		})
	})
	if err != nil {
		return job.Completed{}, at, err
	}
	return *st.Report, at, nil
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
	wait, err := s.QuestionWait(ctx, jobID)
	if err != nil {
		return job.Question{}, domain.Position{}, err
	}
	questionID := domain.DeriveID(cause.CommandID, "question").String()
	st, at, err := s.OnJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		ask := job.Ask{QuestionID: questionID, Kind: in.Kind, Text: in.Text, Wait: wait, At: now}
		items, err := played(st, results)
		if err != nil {
			return nil, err
		}
		if in.Item != "" && items != nil {
			at := slices.IndexFunc(st.Items, func(i job.Item) bool { return i.ID == in.Item || i.Key == in.Item })
			if at < 0 {
				return nil, domain.InvalidAt("question.item", "is no item of the job's checklist")
			}
			ask.ItemID = st.Items[at].ID
		}
		return job.DecideRobotAsk(st, ask, job.Script{Items: items, Summary: summary})
	})
	return st.Asked(questionID), at, err
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
	var wrong domain.Wrong
	named := make(map[int]bool, len(results))
	for n, r := range results {
		path := fmt.Sprintf("results[%d].item", n)
		i, known := byID[r.Item]
		if !known {
			i, known = byKey[r.Item]
		}
		switch {
		case !known:
			wrong.Add(path, "is no item of the job's checklist")
			continue
		case named[i]:
			wrong.Add(path, "is named twice")
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
	return items, wrong.Refusal()
}
