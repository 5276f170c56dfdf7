package loop

import (
	"time"

	"humanqa/domain"
)

// State is a loop's stream after some events. It belongs to its fold: Evolve
// changes the maps in place, so a state that was passed to Evolve must not be
// used again.
type State struct {
	// Session is the running session, or else the last one; its ID is empty before the
	// first.
	Session Session
	// Ends are the sessions that ended, by id.
	Ends map[string]Status
	// Jobs says which session a test was counted into.
	Jobs map[string]string
}

// Session is one run of the agent.
type Session struct {
	ID            string
	AccountID     string
	ProjectID     string
	Skill         string
	Status        Status
	MaxIterations int
	Iterations    int
	// Spent is the cost of the tests, net of refunds.
	Spent domain.Credits
	// Open are the tests without an outcome, with their prices.
	Open map[string]domain.Credits
	// FailingKeys are those of the latest report. SameBug is how many reports in a row
	// failed with exactly these keys.
	FailingKeys []string
	SameBug     int
	// ReportID is the latest report.
	ReportID string
	// SeenAt is the time of the agent's last call.
	SeenAt time.Time
}

// Evolve folds one event into the state and takes the old state over (see
// State). Events of other aggregates change nothing.
func Evolve(s State, e domain.Event) State {
	switch e := e.(type) {
	case *Started:
		s.Session = Session{
			ID: e.SessionID, AccountID: e.AccountID, ProjectID: e.ProjectID, Skill: e.Skill,
			Status: StatusRunning, MaxIterations: e.MaxIterations, SeenAt: e.At,
			Open: make(map[string]domain.Credits),
		}
	case *Iterated:
		if s.Jobs == nil {
			s.Jobs = make(map[string]string)
		}
		s.Jobs[e.JobID] = e.SessionID
		s.Session.Iterations++
		s.Session.Spent += e.Credits
		s.Session.Open[e.JobID] = e.Credits
		s.Session.SeenAt = e.At
	case *OutcomeRecorded:
		s.Session.recordOutcome(e)
	case *Ended:
		if s.Ends == nil {
			s.Ends = make(map[string]Status)
		}
		s.Ends[e.SessionID] = e.FinalStatus
		s.Session.Status = e.FinalStatus
	}
	return s
}

func (s *Session) recordOutcome(e *OutcomeRecorded) {
	delete(s.Open, e.JobID)
	s.Spent -= e.Refund
	if e.ReportID == "" {
		return // without a report the bugs are unknown
	}
	s.SameBug = s.inARow(e.FailingKeys)
	s.FailingKeys, s.ReportID = e.FailingKeys, e.ReportID
}
