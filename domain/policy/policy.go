// Package policy holds the automatic actions: reactions to events that issue commands.
// The SLA, silent claims, open questions, checklists, analyses, AI reviews, sessions, loops, expiring
// lots and refunds after a crash all work this way.
//
// A policy has two halves. React is pure: it gives the timers that an event sets or
// clears. A projector (projections/timers) keeps those timers as rows, in the
// transaction of its checkpoint. Fire runs when a timer is due. It issues a command
// whose id derives from the event that set the timer. So firing twice (a restart, two
// nodes, a lease that ran out) has one effect.
//
// A node takes a due timer under a lease, and the firing renews it. A successful Fire
// settles the timer for the event that set it, in policy.leases, which no rebuild
// touches. So a rebuild, a restart, a second node or a clock set back changes nothing.
// A later event sets the timer again. A failed Fire is tried again after a while.
//
// Events are stamped, and timers due, by Postgres' clock (internal/pgclock). A sandbox
// account has its own clock (account.clock_advanced). That clock decides when its timers
// are due, and dates its commands.
package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// Timer is a thing to do at a time. Kind and Key identify it. The tags are the columns of
// its row.
type Timer struct {
	Kind string `json:"kind"`
	Key  string `json:"key"`
	// AccountID is the account of the timer's data. It may be empty where no sandbox
	// has such timers.
	AccountID string `json:"account_id"`
	// DueAt is the account's time, which a sandbox's clock may reach early. With
	// WallClock it is the service's time, which no client moves.
	DueAt     time.Time `json:"due_at"`
	WallClock bool      `json:"wall_clock"`

	// The runner sets these fields of a timer that is due.

	// Sandbox says that the account is a sandbox.
	Sandbox bool `json:"sandbox"`
	// CauseID is the event that set the timer; Position is where it stands in
	// the log.
	CauseID  string `json:"cause_id"`
	Position int64  `json:"position"`
	// Attempt counts the firings for that event, from 1.
	Attempt int `json:"attempts"`
	// Fence is the fencing token of this lease of the timer.
	Fence int64 `json:"fence"`
}

// Change sets a timer (again), or clears it. First promises that the timer was
// never set before.
type Change struct {
	Timer
	First bool
	Clear bool
}

// Policy is an automatic action.
type Policy struct {
	// Kind names its timers. The names are stored.
	Kind string
	// Handles lists the types of the events that React reacts to.
	Handles []string
	// Pool is set where Fire waits for an outside party, such as a model. So it does not
	// delay other policies.
	Pool Pool
	// Fire acts on the timer. A refusal (*domain.Error) settles the timer: the state has
	// changed, and a repeat would be refused again. Any other error, and Unavailable, is
	// a failure.
	Fire func(context.Context, Timer) error

	// react gives timers without their kind.
	react func(domain.Recorded) []Change
	// issue is the command of Fire. It gets the timer's key.
	issue func(Commands, context.Context, command.Cause, string) (domain.Position, error)
}

// React is the pure half: the timers that an event sets or clears.
func (p Policy) React(r domain.Recorded) []Change {
	changes := p.react(r)
	for i := range changes {
		changes[i].Kind = p.Kind
	}
	return changes
}

// Pool is a number of places that the firings of some policies share.
type Pool struct {
	Name   string
	Places int
	// PerAccount is how many of an account's timers are fired at once, over all
	// nodes; 0: as many as there are places. Accounts take turns then.
	PerAccount int
	// Within is the longest time that a Fire may take.
	Within time.Duration
	// Rest is the longest pause behind a Fire that failed. The log is tried again soon: an
	// SLA that ended while it was away is late by no more than this. A stranger's server is not.
	Rest time.Duration
}

// Outcome is the outcome of a firing. Err nil settles the timer; otherwise it comes back
// after Retry. Final settles the timer despite an error: Err says why the policy did
// nothing.
type Outcome struct {
	Timer
	Err   error
	Final bool
	Retry time.Duration
}

// Timers are the rows that the projector keeps, and the leases on them.
type Timers interface {
	// TakeDue leases up to limit due timers of the kinds to the caller. No other node
	// gets them until the lease ends. perAccount bounds the leased timers of one
	// account over all nodes; 0: no bound.
	TakeDue(ctx context.Context, kinds []string, limit, perAccount int, lease time.Duration) ([]Timer, error)
	// Renew prolongs the lease of a timer that is being fired, from now on; false:
	// it has been taken over, or settled.
	Renew(ctx context.Context, t Timer, lease time.Duration) (held bool, err error)
	// Settle ends the leases of fired timers. An outcome is ignored if another node has
	// taken the lease over.
	Settle(ctx context.Context, outcomes []Outcome) error
	// Next gives the time until the next timer of the kinds is due, by the current rows;
	// false: none is due within that time.
	Next(ctx context.Context, kinds []string, within time.Duration) (time.Duration, bool, error)
	// Wake gives a channel that gets a value when timers were set.
	Wake(ctx context.Context) <-chan struct{}
	// Forget drops the leases of timers that are long gone.
	Forget(ctx context.Context) error
}

// Commands has the commands that the policies issue: *command.Service.
type Commands interface {
	VoidJob(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	RefundJob(ctx context.Context, cause command.Cause, jobID, reason string) (domain.Position, error)
	SettleDispute(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	ExpireLots(ctx context.Context, cause command.Cause) (domain.Position, error)
	MissSLA(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	ReleaseSilent(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	ExpireQuestion(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	GoOnPlaying(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	WriteChecklist(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	AnalyseJob(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	ReviewJob(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
	RecordLoopOutcome(ctx context.Context, cause command.Cause, loopID, jobID string) (domain.Position, error)
	AbandonLoop(ctx context.Context, cause command.Cause, loopID string) (domain.Position, error)
	SettleSession(ctx context.Context, cause command.Cause, sessionID string) (domain.Position, error)
	SettleArchive(ctx context.Context, cause command.Cause, projectID string) (domain.Position, error)
	TellCommit(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
}

// Rules lists every policy without its Fire, for the projector.
func Rules() []Policy {
	return slices.Concat(settlement, deadlines, robots, loops, sessions, commitStatuses)
}

// All lists every policy.
func All(c Commands) []Policy {
	all := Rules()
	for i, p := range all {
		all[i].Fire = func(ctx context.Context, t Timer) error {
			_, err := p.issue(c, ctx, cause(t), t.Key)
			return err
		}
	}
	return all
}

// commandID is the id of the command that a timer issues. The same timer, set by the same
// event, always has the same id.
func commandID(t Timer) uuid.UUID {
	return domain.CommandIDFor("policy", t.Kind, t.Key, t.CauseID)
}

// cause identifies the actor of the command. Postgres decided that the timer is due;
// this machine's clock may be behind.
func cause(t Timer) command.Cause {
	c := command.Cause{
		CommandID: commandID(t), CausationID: t.CauseID, Actor: fmt.Sprintf("policy:%s", t.Kind),
		AccountID: t.AccountID, Sandbox: t.Sandbox,
	}
	if !t.WallClock {
		c.NotBefore = t.DueAt
	}
	return c
}

// endOf gives the facts about the end of a job that timers depend on: the session and the loop
// of the job, and whether a commit status tells its verdict.
func endOf(e domain.Event) (sessionID, loopID string, tellsCommit bool) {
	switch e := e.(type) {
	case *job.Completed:
		return e.SessionID, e.LoopID, e.CommitStatus
	case *job.Cancelled:
		return e.SessionID, e.LoopID, e.CommitStatus
	case *job.Failed:
		return e.SessionID, e.LoopID, e.CommitStatus
	}
	return "", "", false
}

// from sets a timer at the events of one Go type. All other events that the policy handles
// clear it.
func from[E domain.Event](begin func(domain.Recorded, E) []Change) func(domain.Recorded) []Change {
	return func(r domain.Recorded) []Change {
		if e, begins := r.Event.(E); begins {
			return begin(r, e)
		}
		return cleared(r.StreamID())
	}
}

func cleared(key string) []Change {
	return []Change{{Timer: Timer{Key: key}, Clear: true}}
}

// set sets a timer that may have been set before.
func set(t Timer) []Change { return []Change{{Timer: t}} }

// setFirst sets a timer that was never set before.
func setFirst(t Timer) []Change { return []Change{{Timer: t, First: true}} }

// after is a timer so long after the event, by the service's clock.
func after(r domain.Recorded, key string, wait time.Duration) Timer {
	return Timer{Key: key, AccountID: r.Meta.AccountID, DueAt: r.Meta.Time.Add(wait), WallClock: true}
}
