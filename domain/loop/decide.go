package loop

import (
	"cmp"
	"slices"
	"time"

	"humanqa/domain"
)

// The rules of a loop (decisions, "Loops").
const (
	// DefaultMaxIterations holds unless the agent sets another.
	DefaultMaxIterations = 10
	// SilentFor is the time without calls after which an agent counts as silent.
	SilentFor = 24 * time.Hour
	// stuckAfter is the number of reports in a row with the same failures that ends a
	// session as stuck.
	stuckAfter = 3
)

// Every decision returns the events to write, none for a harmless repeat, or
// the refusal. Sessions of one stream run one after the other.

// Setting has the facts outside the loop that decide an end.
type Setting struct {
	ProjectName string
	// Snoozed: the project's alerts are held back.
	Snoozed bool
	Now     time.Time
}

// DecideJoin counts a test into the session that runs. It starts a new session when none
// runs, when the agent begins again with iteration 1, and when the running session has
// been silent for too long. The same job is counted once. The test's session, both times
// and the default of the bound are filled in here.
func DecideJoin(s State, start Started, test Iterated, at Setting) ([]domain.Event, error) {
	if _, counted := s.Jobs[test.JobID]; counted {
		return nil, nil
	}
	test.SessionID, test.At = s.Session.ID, at.Now
	var events []domain.Event
	if s.Session.Status == StatusRunning {
		if again := test.Iteration == 1 && s.Session.Iterations > 0; !again && !s.Session.silent(at.Now) {
			return []domain.Event{&test}, nil
		}
		events = append(events, s.Session.endedEvent(StatusAbandoned, at))
	}
	test.SessionID = start.SessionID
	start.MaxIterations, start.At = cmp.Or(start.MaxIterations, DefaultMaxIterations), at.Now
	return append(events, &start, &test), nil
}

// DecideRecordOutcome records the outcome of a test, and ends the session if the outcome
// decides it. The outcome of a test of an earlier session changes nothing. Refund is the
// amount that came back for a job without a report. The session and the time are filled in here.
func DecideRecordOutcome(s State, o OutcomeRecorded, at Setting) ([]domain.Event, error) {
	if _, open := s.Session.Open[o.JobID]; !open || s.Session.Status != StatusRunning {
		return nil, nil
	}
	o.SessionID, o.At = s.Session.ID, at.Now
	events := []domain.Event{&o}
	known := s.Session.Iterations - len(s.Session.Open) + 1 // outcomes, with this one
	after := s.Session                                      // the maps stay the state's: only plain fields change
	after.Spent -= o.Refund
	if o.ReportID != "" {
		after.ReportID = o.ReportID
	}
	switch {
	case o.Overall == "pass":
		events = append(events, after.endedEvent(StatusPassed, at))
	case o.ReportID != "" && s.Session.inARow(o.FailingKeys) >= stuckAfter:
		events = append(events, after.endedEvent(StatusStuckSameBug, at))
	case known >= s.Session.MaxIterations:
		events = append(events, after.endedEvent(StatusMaxIterations, at))
	}
	return events, nil
}

// DecideFinalize ends a session by the agent's order. The same order again is a repeat.
func DecideFinalize(s State, sessionID string, final Status, at Setting) ([]domain.Event, error) {
	ended, over := s.Ends[sessionID]
	switch {
	case over && ended == final:
		return nil, nil
	case over:
		return nil, domain.Conflict("the loop session has ended: %s", ended).
			WithHint("the next test with iteration 1 starts a new one")
	case sessionID == "" || sessionID != s.Session.ID:
		return nil, domain.NotFound("loop session")
	case !slices.Contains(Ends(), final):
		return nil, domain.InvalidAt("finalStatus", "is not how a loop session ends")
	}
	return []domain.Event{s.Session.endedEvent(final, at)}, nil
}

// DecideOutOfCredits ends the running session, if there is one, because its next test
// could not be paid. If the test had joined already, its price is taken out of Spent.
func DecideOutOfCredits(s State, unpaid string, at Setting) ([]domain.Event, error) {
	if s.Session.Status != StatusRunning {
		return nil, nil
	}
	price, joined := s.Session.Open[unpaid]
	if !joined {
		return []domain.Event{s.Session.endedEvent(StatusOutOfCredits, at)}, nil
	}
	after := s.Session // the maps stay the state's: only plain fields change
	after.Spent -= price
	return []domain.Event{
		&OutcomeRecorded{SessionID: after.ID, JobID: unpaid, FailingKeys: []string{}, Refund: price, At: at.Now},
		after.endedEvent(StatusOutOfCredits, at),
	}, nil
}

// DecideAbandon ends the session if it runs and was silent for too long.
func DecideAbandon(s State, at Setting) ([]domain.Event, error) {
	if s.Session.Status != StatusRunning || !s.Session.silent(at.Now) {
		return nil, nil
	}
	return []domain.Event{s.Session.endedEvent(StatusAbandoned, at)}, nil
}

// Ends lists the ends of a session.
func Ends() []Status {
	return []Status{StatusPassed, StatusStuckSameBug, StatusOutOfCredits, StatusMaxIterations, StatusAbandoned}
}

// alarming are the ends that are announced (specification, "Event kinds").
func (s Status) alarming() bool {
	return s == StatusStuckSameBug || s == StatusOutOfCredits || s == StatusMaxIterations
}

func (s Session) silent(now time.Time) bool { return !now.Before(s.SeenAt.Add(SilentFor)) }

// inARow is how many reports in a row have failed with exactly these keys, the new report
// included.
func (s Session) inARow(failing []string) int {
	switch {
	case len(failing) == 0:
		return 0
	case slices.Equal(failing, s.FailingKeys):
		return s.SameBug + 1
	}
	return 1
}

func (s Session) endedEvent(final Status, at Setting) *Ended {
	return &Ended{
		SessionID: s.ID, ProjectID: s.ProjectID, ProjectName: at.ProjectName, Skill: s.Skill,
		FinalStatus: final, Iterations: s.Iterations, CreditsSpent: s.Spent, FinalReportID: s.ReportID,
		Alert: final.alarming() && !at.Snoozed, At: at.Now,
	}
}
