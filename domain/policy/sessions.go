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

// Settlement is what sessions ask of the commands.
type Settlement interface {
	SettleSession(ctx context.Context, cause command.Cause, sessionID string) (domain.Position, error)
}

// settleAfter is how long the command that started or ended a session has to
// see to its slots itself.
const settleAfter = 5 * time.Second

// Sessions ends lobbies at their deadline, finishes what a crash left of a
// session's start or end, and completes sessions once their jobs have ended
// (decisions, "Session states").
type Sessions struct{ Settlement Settlement }

// Kind implements Policy.
func (Sessions) Kind() string { return "session" }

// Handles implements Rule.
func (Sessions) Handles() []string {
	return domain.TypesOf(
		&session.Created{}, &session.Started{}, &session.Expired{}, &session.Cancelled{},
		&job.Completed{}, &job.Failed{}, &job.Cancelled{},
	)
}

// React implements Rule. A session's own timer is its deadline; its start, or
// its end, takes that one's place. The end of a slot's job has a timer of its
// own: of two jobs neither's is lost, and none puts off the session's. A slot that is
// cancelled tells that the session is: what a crash leaves of it is finished.
func (p Sessions) React(r domain.Recorded) []Change {
	id := r.StreamID()
	switch e := r.Event.(type) {
	case *session.Created:
		return []Change{{First: true, Timer: Timer{
			Kind: p.Kind(), Key: id, AccountID: e.AccountID, DueAt: e.ReadyDeadline,
		}}}
	case *session.Started, *session.Expired, *session.Cancelled:
		return []Change{p.soon(r, id, settleAfter)}
	case *job.Completed:
		return p.ended(r, e.SessionID, 0)
	case *job.Failed:
		return p.ended(r, e.SessionID, 0)
	case *job.Cancelled:
		if e.Reason == job.CancelSessionCancelled {
			return p.ended(r, e.SessionID, settleAfter)
		}
	}
	return nil
}

func (p Sessions) ended(r domain.Recorded, sessionID string, after time.Duration) []Change {
	if sessionID == "" {
		return nil
	}
	return []Change{p.soon(r, sessionID+"/"+r.StreamID(), after)}
}

func (p Sessions) soon(r domain.Recorded, key string, after time.Duration) Change {
	return Change{Timer: Timer{
		Kind: p.Kind(), Key: key, AccountID: r.Meta.AccountID, DueAt: r.Meta.Time.Add(after), WallClock: true,
	}}
}

// Fire implements Policy.
func (p Sessions) Fire(ctx context.Context, t Timer) error {
	sessionID, _, _ := strings.Cut(t.Key, "/")
	_, err := p.Settlement.SettleSession(ctx, cause(t), sessionID)
	return err
}
