package job

import (
	"slices"
	"time"

	"humanqa/domain"
)

// The robots: checkers that are no people. A claim of theirs lasts as long as
// its completion takes to write.
const (
	Reviewer = "ai-review" // does AI reviews
	Player   = "sandbox"   // plays sandbox jobs
)

// RobotCompletion is a robot's whole work on a job. Items is the report: every
// item of the list, and whatever else was found, each with a verdict. An empty
// key is derived.
type RobotCompletion struct {
	Robot    string
	ReportID string
	Summary  string
	Items    []ReportItem
	At       time.Time
}

// DecideRobotComplete has a robot claim and complete a job at once: the
// reviewer an AI review, the player any other job of a sandbox. The same robot
// completing again is a repeat: the first report stands.
func DecideRobotComplete(s State, c RobotCompletion) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.Status == Completed && s.CheckerID == c.Robot:
		return nil, nil
	case s.Status != Pending:
		return nil, domain.Conflict("the job is %s", s.Status)
	case c.Robot == Reviewer && s.Type != AIReview:
		return nil, domain.Conflict("the job is no AI review")
	case c.Robot == Player && s.Type == AIReview:
		return nil, domain.Conflict("an AI review completes by itself").WithHint("wait for its report")
	case c.Robot == Player && !s.Sandbox:
		return nil, domain.Conflict("the job is not a sandbox's").WithHint("submit it with a key of a sandbox account")
	case s.NeedsChecklist():
		return nil, errNoList()
	}
	if err := begun(s); err != nil {
		return nil, err
	}
	items := slices.Clone(c.Items)
	list := make([]Item, len(items))
	for i, it := range items {
		list[i] = it.Item
	}
	for i, keyed := range UniqueKeys(list) {
		items[i].Key = keyed.Key
	}
	var wrong []domain.Detail
	for _, listed := range s.Items {
		if !slices.ContainsFunc(items, func(it ReportItem) bool { return it.ID == listed.ID }) {
			wrong = append(wrong, domain.Detail{Path: "items", Message: "leaves out " + listed.ID})
		}
	}
	for _, it := range items {
		if it.Status != ItemPass && it.Status != ItemFail && it.Status != ItemSkip {
			wrong = append(wrong, domain.Detail{Path: "items", Message: it.ID + " has no verdict"})
		}
	}
	if len(wrong) > 0 {
		return nil, domain.Invalid(wrong...)
	}
	claimed := s.claim(c.Robot, c.At)
	return []domain.Event{claimed, s.complete(c.ReportID, c.Summary, "", items, c.At)}, nil
}
