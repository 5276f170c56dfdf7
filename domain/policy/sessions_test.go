package policy_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/policy"
	"humanqa/domain/session"
	"humanqa/internal/testing/must"
)

func TestWhatSetsASessionsTimers(t *testing.T) {
	t.Parallel()
	written := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	deadline := written.Add(15 * time.Minute)
	own, slot := domain.SessionStream("s1"), domain.JobStream("j1")
	soon := func(key string, due time.Time) []policy.Change {
		return []policy.Change{{Timer: policy.Timer{Kind: "session", Key: key, AccountID: "acc", DueAt: due, WallClock: true}}}
	}
	for name, c := range map[string]struct {
		stream string
		event  domain.Event
		want   []policy.Change
	}{
		"a lobby ends at its deadline, by the account's clock": {
			own, &session.Created{Submission: session.Submission{AccountID: "acc"}, ReadyDeadline: deadline},
			[]policy.Change{{First: true, Timer: policy.Timer{Kind: "session", Key: "s1", AccountID: "acc", DueAt: deadline}}},
		},
		"a start is finished":               {own, &session.Started{}, soon("s1", written.Add(5*time.Second))},
		"an expiry is finished":             {own, &session.Expired{}, soon("s1", written.Add(5*time.Second))},
		"a cancellation is finished":        {own, &session.Cancelled{}, soon("s1", written.Add(5*time.Second))},
		"a slot's report":                   {slot, &job.Completed{SessionID: "s1"}, soon("s1/j1", written)},
		"a slot that is given up":           {slot, &job.Cancelled{SessionID: "s1", Reason: job.CancelSessionCancelled}, soon("s1/j1", written.Add(5*time.Second))},
		"a slot that expired":               {slot, &job.Cancelled{SessionID: "s1", Reason: job.CancelSessionExpired}, nil},
		"a job that is cancelled":           {slot, &job.Cancelled{Reason: job.CancelClient}, nil},
		"a slot's failure":                  {slot, &job.Failed{SessionID: "s1"}, soon("s1/j1", written)},
		"a job of no session":               {slot, &job.Completed{}, nil},
		"a failure of no session":           {slot, &job.Failed{}, nil},
		"a completed session needs no more": {own, &session.Completed{}, nil},
	} {
		got := rule("session").React(domain.Recorded{
			Stream: c.stream, Event: c.event, Meta: domain.Metadata{AccountID: "acc", Time: written},
		})
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

type settled struct {
	policy.Commands
	sessions []string
	commands map[uuid.UUID]bool
}

func (s *settled) SettleSession(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	s.sessions = append(s.sessions, id)
	s.commands[c.CommandID] = true
	return domain.Position{}, nil
}

func TestEveryTimerOfASessionSettlesItAsACommandOfItsOwn(t *testing.T) {
	t.Parallel()
	s := &settled{commands: map[uuid.UUID]bool{}}
	all := policy.All(s)
	fire := all[slices.IndexFunc(all, func(p policy.Policy) bool { return p.Kind == "session" })].Fire
	for _, timer := range []policy.Timer{
		{Kind: "session", Key: "s1", CauseID: "e1"}, {Kind: "session", Key: "s1", CauseID: "e2"},
		{Kind: "session", Key: "s1/j1", CauseID: "e3"}, {Kind: "session", Key: "s1/j2", CauseID: "e4"},
	} {
		for range 2 { // a lease that ran out fires again: the same command
			must.NoError(t, fire(t.Context(), timer))
		}
	}
	for _, id := range s.sessions {
		if id != "s1" {
			t.Errorf("settled %q", id)
		}
	}
	if len(s.sessions) != 8 || len(s.commands) != 4 {
		t.Errorf("%d settlements by %d commands", len(s.sessions), len(s.commands))
	}
}
