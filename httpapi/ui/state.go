package ui

import (
	"cmp"

	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/session"
	"humanqa/projections/jobs"
	"humanqa/projections/sessions"
)

// State shows a state by a word, a colour and a sign; the template "state" renders it.
type State struct {
	Word string
	Kind string // pass, fail, warn, live, or empty
	Icon string // its name; empty: none
}

// NewState is a State.
func NewState(word, kind, icon string) State { return State{Word: word, Kind: kind, Icon: icon} }

var (
	jobStates = map[job.Status]State{
		job.StatusPending:   {"Waiting", "", "clock"},
		job.StatusClaimed:   {"Testing", "live", ""},
		job.StatusCancelled: {"Cancelled", "", "skip"},
		job.StatusFailed:    {"Not tested", "warn", "alert"},
	}
	verdictStates = map[string]State{job.OverallPass: {"Passed", "pass", "check"}, job.OverallFail: {"Failed", "fail", "cross"}}
)

// JobState is the state of a test as pages show it.
func JobState(j jobs.Summary) State {
	if j.Asks {
		return State{"Question", "warn", "person"}
	}
	return cmp.Or(jobStates[j.Status], verdictStates[j.OverallStatus], State{"Inconclusive", "warn", "skip"})
}

// SessionState is the state of a session as pages show it.
func SessionState(s sessions.Session) State {
	switch s.Status {
	case session.StatusLobby:
		return NewState("Lobby", "warn", "clock")
	case session.StatusActive:
		if back, live := s.GivenBack(); back > 0 && back == live {
			return NewState("No checker", "warn", "clock")
		}
		return NewState("Testing", "live", "")
	case session.StatusExpired:
		return NewState("Expired", "", "skip")
	case session.StatusCancelled:
		return NewState("Cancelled", "", "skip")
	case session.StatusCompleted:
	}
	if s.FailCount > 0 {
		return NewState("Failed", "fail", "cross")
	}
	return NewState("Completed", "pass", "check")
}

var loopStates = map[loop.Status]State{
	loop.StatusRunning:       {"Running", "live", ""},
	loop.StatusPassed:        {"Passed", "pass", "check"},
	loop.StatusStuckSameBug:  {"Stuck", "fail", "cross"},
	loop.StatusOutOfCredits:  {"Out of credits", "fail", "coin"},
	loop.StatusMaxIterations: {"Gave up", "warn", "alert"},
	loop.StatusAbandoned:     {"Abandoned", "", "skip"},
}

// LoopState is the state of a loop as pages show it.
func LoopState(s loop.Status) State { return loopStates[s] }
