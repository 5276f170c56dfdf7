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

// settleAfter is the time that the command that started or ended a session has to settle
// its slots itself.
const settleAfter = 5 * time.Second

// sessions ends lobbies at their deadline, finishes a session's start or end after a
// crash, and completes sessions once their jobs have ended (decisions, "Session states").
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

// A session's own timer is for its deadline; the session's start or end sets it again.
// The end of a slot's job sets a timer of its own. So the ends of two jobs do not replace
// each other, and do not delay the session's own timer. A slot cancelled with its session
// sets a timer that finishes the cancellation after a crash.
func watchSession(r domain.Recorded) []Change {
	slotOf, _, _ := endOf(r.Event)
	wait := time.Duration(0)
	switch e := r.Event.(type) {
	case *session.Created:
		return setFirst(Timer{Key: r.StreamID(), AccountID: e.AccountID, DueAt: e.ReadyDeadline})
	case *session.Started, *session.Expired, *session.Cancelled:
		return set(after(r, r.StreamID(), settleAfter))
	case *job.Cancelled:
		if wait = settleAfter; e.Reason != job.CancelSessionCancelled {
			return nil
		}
	}
	if slotOf == "" {
		return nil
	}
	return set(after(r, slotOf+"/"+r.StreamID(), wait))
}
