package policy

import (
	"context"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
)

// settleAfter is how long the command that started or ended a session has to
// see to its slots itself.
const settleAfter = 5 * time.Second

// sessions ends lobbies at their deadline, finishes what a crash left of a
// session's start or end, and completes sessions once their jobs have ended
// (decisions, "Session states").
var sessions = []Policy{{
	Kind: "session",
	Handles: domain.TypesOf(
		&session.Created{}, &session.Started{}, &session.Expired{}, &session.Cancelled{},
		&job.Completed{}, &job.Failed{}, &job.Cancelled{},
	),
	react: watchSession,
	issue: func(c Commands, ctx context.Context, cause command.Cause, key string) (domain.Position, error) {
		sessionID, _, _ := strings.Cut(key, "/")
		return c.SettleSession(ctx, cause, sessionID)
	},
}}

// A session's own timer is its deadline; its start, or its end, takes that one's place.
// The end of a slot's job has a timer of its own: of two jobs neither's is lost, and none
// puts off the session's. A slot that is cancelled tells that the session is: what a crash
// leaves of it is finished.
func watchSession(r domain.Recorded) []Change {
	slotOf, wait := "", time.Duration(0)
	switch e := r.Event.(type) {
	case *session.Created:
		return setFirst(Timer{Key: r.StreamID(), AccountID: e.AccountID, DueAt: e.ReadyDeadline})
	case *session.Started, *session.Expired, *session.Cancelled:
		return set(after(r, r.StreamID(), settleAfter))
	case *job.Completed:
		slotOf = e.SessionID
	case *job.Failed:
		slotOf = e.SessionID
	case *job.Cancelled:
		if e.Reason == job.CancelSessionCancelled {
			slotOf, wait = e.SessionID, settleAfter
		}
	}
	if slotOf == "" {
		return nil
	}
	return set(after(r, slotOf+"/"+r.StreamID(), wait))
}
