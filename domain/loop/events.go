// Package loop follows the loops of agents: one agent skill repeats hosted tests on one
// project until they pass or the loop fails (decisions, "Loops"). Everything here is
// pure: time and ids come in with the command.
package loop

import (
	"time"

	"humanqa/domain"
)

// Status is the state of a loop session.
type Status string

// The states. All but StatusRunning are ends.
const (
	StatusRunning       Status = "running"
	StatusPassed        Status = "passed"
	StatusStuckSameBug  Status = "stuck_same_bug"
	StatusOutOfCredits  Status = "out_of_credits"
	StatusMaxIterations Status = "max_iterations"
	StatusAbandoned     Status = "abandoned"
)

// Started opens a loop session. A stream holds the sessions of one skill on
// one project, one after the other; SessionID tells them apart.
type Started struct {
	SessionID     string    `json:"sessionId"`
	AccountID     string    `json:"accountId"`
	ProjectID     string    `json:"projectId"`
	Skill         string    `json:"skill"`
	MaxIterations int       `json:"maxIterations"`
	At            time.Time `json:"at"`
}

// Iterated counts a test into the session. Iteration is the agent's own number.
type Iterated struct {
	SessionID string         `json:"sessionId"`
	JobID     string         `json:"jobId"`
	Iteration int            `json:"iteration"`
	Credits   domain.Credits `json:"credits"`
	At        time.Time      `json:"at"`
}

// OutcomeRecorded is the outcome of one iteration. FailingKeys is sorted.
type OutcomeRecorded struct {
	SessionID   string         `json:"sessionId"`
	JobID       string         `json:"jobId"`
	Overall     string         `json:"overallStatus"` // pass, fail, inconclusive; empty: the job ended without a report
	ReportID    string         `json:"reportId,omitempty"`
	FailingKeys []string       `json:"failingKeys"`
	Refund      domain.Credits `json:"refund,omitempty"`
	At          time.Time      `json:"at"`
}

// Ended ends the session. Alert is true if loop_session.ended goes out: the end is a
// bad one, and the project's alerts were not snoozed.
type Ended struct {
	SessionID     string         `json:"sessionId"`
	ProjectID     string         `json:"projectId"`
	ProjectName   string         `json:"projectName"`
	Skill         string         `json:"skill"`
	FinalStatus   Status         `json:"finalStatus"`
	Iterations    int            `json:"iterations"`
	CreditsSpent  domain.Credits `json:"creditsSpent"`
	FinalReportID string         `json:"finalReportId,omitempty"`
	Alert         bool           `json:"alert"`
	At            time.Time      `json:"at"`
}

func (*Started) EventType() string         { return "loop_session.started" }
func (*Iterated) EventType() string        { return "loop_session.iterated" }
func (*OutcomeRecorded) EventType() string { return "loop_session.judged" }
func (*Ended) EventType() string           { return "loop_session.ended" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return domain.Specs(&Started{}, &Iterated{}, &OutcomeRecorded{}, &Ended{})
}
