package job

import (
	"slices"
	"time"

	"humanqa/domain"
)

// The robots are checkers that are no people. They complete a claimed job at once. The
// exceptions are a slot that waits for its session, and a job with a question of the
// player.
const (
	Reviewer = "ai-review" // does AI reviews
	Player   = "sandbox"   // plays sandbox jobs
)

// IsRobot reports whether the checker is a robot, whose claim never falls silent.
func IsRobot(checkerID string) bool { return checkerID == Reviewer || checkerID == Player }

// DecideRobotClaim has the player take a sandbox slot, so that its session can
// start. The slot is completed once it has.
func DecideRobotClaim(s State, now time.Time) ([]domain.Event, error) {
	switch err := robotMay(s, Player); {
	case err != nil:
		return nil, err
	case s.Status == StatusClaimed:
		return nil, nil
	case s.SessionID == "":
		return nil, domain.Conflict("the job is no slot of a session")
	}
	return []domain.Event{s.claimedEvent(Player, now)}, nil
}

// DecideRobotComplete has a robot claim a job, unless it holds it, and complete
// it at once: the reviewer an AI review, the player any other job of a sandbox.
// The same robot completing again is a repeat: the first report stands. The report has
// every item of the list, and other findings, each with a verdict. An empty key is derived.
func DecideRobotComplete(s State, robot string, report Completed) ([]domain.Event, error) {
	if s.Status == StatusCompleted && s.CheckerID == robot {
		return nil, nil
	}
	if err := robotMay(s, robot); err != nil {
		return nil, err
	}
	if err := begun(s); err != nil {
		return nil, err
	}
	items := slices.Clone(report.Items)
	list := make([]Item, len(items))
	for i, it := range items {
		list[i] = it.Item
	}
	for i, keyed := range UniqueKeys(list) {
		items[i].Key = keyed.Key
	}
	var wrong domain.Wrong
	for _, listed := range s.Items {
		there := slices.ContainsFunc(items, func(it ReportItem) bool { return it.ID == listed.ID })
		wrong.AddIf(!there, "items", "leaves out %s", listed.ID)
	}
	for _, it := range items {
		wrong.AddIf(it.Status != ItemPass && it.Status != ItemFail && it.Status != ItemSkip, "items", "%s has no verdict", it.ID)
	}
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	report.Items = items
	completed := s.complete(report)
	if s.Status == StatusClaimed {
		return s.leaving(report.At, completed), nil
	}
	return []domain.Event{s.claimedEvent(robot, report.At), completed}, nil
}

// Script is what a robot does once its question has ended: Items is the report, with a
// verdict on every item of the list.
type Script struct {
	Items   []ReportItem `json:"items"`
	Summary string       `json:"summary,omitempty" sealed:"text"`
}

// DecideRobotAsk has the player claim a job, unless it holds it, and ask the client. The
// question has the bounds of any other. Then is what the robot does next.
func DecideRobotAsk(s State, a Ask, then Script) ([]domain.Event, error) {
	if _, known := s.Question(a.QuestionID); known { // a repeat
		return nil, nil
	}
	if err := robotMay(s, Player); err != nil {
		return nil, err
	}
	if err := begun(s); err != nil {
		return nil, err
	}
	var events []domain.Event
	if s.Status == StatusPending {
		claimed := s.claimedEvent(Player, a.At)
		events, s = append(events, claimed), Evolve(s, claimed) // a claim changes no map or slice
	}
	a.CheckerID, a.Token = Player, s.Token
	asked, err := DecideAsk(s, a)
	if err != nil {
		return nil, err
	}
	for _, e := range asked {
		if q, ok := e.(*QuestionAsked); ok {
			q.Then = &then
		}
	}
	return append(events, asked...), nil
}

// DecideRobotGoOn has the player complete a job by its script, once its question has
// ended. An item that was skipped meanwhile, for lack of an answer, stays skipped.
func DecideRobotGoOn(s State, reportID string, now time.Time) ([]domain.Event, error) {
	if _, open := s.OpenQuestion(); open || s.Script == nil || s.CheckerID != Player {
		return nil, nil
	}
	items := slices.Clone(s.Script.Items)
	for i, it := range items {
		if v, said := s.Verdicts[it.ID]; said && v.Status != ItemPending {
			items[i].Status, items[i].Note, items[i].Reason = v.Status, v.Note, v.Reason
		}
	}
	return DecideRobotComplete(s, Player, Completed{ReportID: reportID, Summary: s.Script.Summary, Items: items, At: now})
}

// robotMay refuses a job that is not for that robot, or that another checker holds.
func robotMay(s State, robot string) error {
	switch {
	case !s.Exists:
		return domain.NotFound("job")
	case s.Status != StatusPending && (s.Status != StatusClaimed || s.CheckerID != robot):
		return domain.Conflict("the job is %s", s.Status)
	case robot == Reviewer && !s.Type.Automatic():
		return domain.Conflict("the job is no AI review")
	case robot == Player && s.Type.Automatic():
		return domain.Conflict("an AI review completes by itself").WithHint("wait for its report")
	case robot == Player && !s.Sandbox:
		return domain.Conflict("the job is not a sandbox's").WithHint("submit it with a key of a sandbox account")
	case s.NeedsChecklist():
		return errNoList()
	}
	return nil
}
