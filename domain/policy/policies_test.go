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
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/policy"
	"humanqa/domain/project"
	"humanqa/internal/testing/must"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// ahead is the time of an account whose clock was moved: what events say
// themselves, while the log writes down noon.
var ahead = noon.Add(100 * time.Hour)

func set(kind, key string, due time.Time) []policy.Change {
	return []policy.Change{{Timer: policy.Timer{Kind: kind, Key: key, AccountID: "acc", DueAt: due}}}
}

func first(c []policy.Change) []policy.Change { c[0].First = true; return c }

func wall(c []policy.Change) []policy.Change { c[0].WallClock = true; return c }

func cleared(kind, key string) []policy.Change {
	return []policy.Change{{Clear: true, Timer: policy.Timer{Kind: kind, Key: key}}}
}

// rule is the policy with timers of that kind, without its Fire.
func rule(kind string) policy.Policy {
	all := policy.Rules()
	return all[slices.IndexFunc(all, func(p policy.Policy) bool { return p.Kind == kind })]
}

func TestWhatSetsAndClearsTimers(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Hour)
	submitted := func(change func(*job.Created)) *job.Created {
		e := &job.Created{Submission: job.Submission{AccountID: "acc", Type: job.GeneralQA, SLAMinutes: 30}, CreatedAt: ahead, Items: []job.Item{{ID: "i"}}}
		change(e)
		return e
	}
	plain := submitted(func(*job.Created) {})
	review := submitted(func(e *job.Created) { e.Type, e.Items = job.AIReview, nil })
	slot := submitted(func(e *job.Created) { e.SessionID = "s" })
	listless := submitted(func(e *job.Created) { e.Items = nil })
	ends := []domain.Event{&job.Completed{}, &job.Cancelled{}, &job.Failed{}, &job.Voided{}}

	type reaction struct {
		event domain.Event
		want  []policy.Change
	}
	for _, c := range []struct {
		kind      string
		stream    string
		reactions []reaction
		clears    []domain.Event // all of them clear the timer of the stream's id
	}{
		{"orphaned_debit", "credits-acc", []reaction{
			{&credits.Debited{JobID: "j"}, first(wall(set("orphaned_debit", "j", noon.Add(20*time.Second))))},
			{&credits.Refunded{JobID: "j"}, cleared("orphaned_debit", "j")},
		}, nil},
		{"orphaned_debit", "job-j", nil, []domain.Event{plain}},
		{"missing_refund", "job-j", []reaction{
			{&job.Cancelled{}, wall(set("missing_refund", "j", noon.Add(5*time.Second)))},
			{&job.Failed{}, wall(set("missing_refund", "j", noon.Add(5*time.Second)))},
			{&job.Voided{AccountID: "acc"}, wall(set("missing_refund", "j", noon.Add(5*time.Second)))},
		}, nil},
		{"missing_refund", "credits-acc", []reaction{{&credits.Refunded{JobID: "j"}, cleared("missing_refund", "j")}}, nil},
		{"lot_expiry", "credits-acc", []reaction{
			{&credits.Granted{LotID: "l", ExpiresAt: &later}, first(set("lot_expiry", "l", later))},
			{&credits.Granted{LotID: "l"}, nil},
			{&credits.LotExpired{LotID: "l"}, cleared("lot_expiry", "l")},
		}, nil},
		{"archive", "project-p", []reaction{
			{&project.Archived{}, wall(set("archive", "p", noon.Add(time.Minute)))},
		}, []domain.Event{&project.Restored{}}},
		{"sla", "job-j", []reaction{
			{plain, first(set("sla", "j", ahead.Add(30*time.Minute)))},
			{review, nil},
			{slot, nil},
			{&job.SlotStarted{DueAt: later}, set("sla", "j", later)},
			{&job.SLAMissed{Requeued: true, DueAt: later}, set("sla", "j", later)},
			{&job.AnswerGiven{DueAt: later}, set("sla", "j", later)},
			{&job.QuestionClosed{DueAt: later}, set("sla", "j", later)},
		}, append(ends, &job.SLAMissed{}, &job.QuestionAsked{})},
		{"question", "job-j", []reaction{
			{&job.QuestionAsked{Until: later}, set("question", "j", later)},
		}, []domain.Event{&job.AnswerGiven{}, &job.QuestionClosed{}}},
		{"silent_claim", "job-j", []reaction{
			{&job.Claimed{CheckerID: "ann", At: ahead}, set("silent_claim", "j", ahead.Add(6*time.Minute))},
			{&job.Claimed{CheckerID: job.Player, At: ahead}, nil},
			{&job.Claimed{CheckerID: job.Reviewer, At: ahead}, nil},
			{&job.ItemChecked{At: ahead}, set("silent_claim", "j", ahead.Add(6*time.Minute))},
			{&job.FindingAdded{At: ahead}, set("silent_claim", "j", ahead.Add(6*time.Minute))},
			{&job.FindingEdited{At: ahead}, set("silent_claim", "j", ahead.Add(6*time.Minute))},
			{&job.FindingWithdrawn{At: ahead}, set("silent_claim", "j", ahead.Add(6*time.Minute))},
			{&job.Heartbeat{At: ahead}, set("silent_claim", "j", ahead.Add(6*time.Minute))},
			{&job.AnswerGiven{At: ahead}, set("silent_claim", "j", ahead.Add(6*time.Minute))},
			{&job.QuestionClosed{At: ahead}, set("silent_claim", "j", ahead.Add(6*time.Minute))},
		}, append(ends, &job.Released{}, &job.SLAMissed{Requeued: true}, &job.UntestableReported{}, &job.QuestionAsked{})},
		{"player", "job-j", []reaction{
			{&job.AnswerGiven{Robot: true}, wall(set("player", "j", noon))},
			{&job.QuestionClosed{Robot: true}, wall(set("player", "j", noon))},
			{&job.AnswerGiven{}, nil},
			{&job.QuestionClosed{}, nil},
		}, nil},
		{"checklist", "job-j", []reaction{
			{listless, first(wall(set("checklist", "j", noon)))},
			{plain, nil},
			{review, nil},
		}, append(ends, &job.ChecklistWritten{})},
		{"analysis", "job-j", []reaction{
			{&job.Completed{}, first(wall(set("analysis", "j", noon)))},
		}, []domain.Event{&job.AIReportReady{}}},
		{"commit_status", "job-j", []reaction{
			{&job.CommitStatusRequested{Jobs: []string{"j", "k"}}, first(wall(set("commit_status", "j", noon)))},
			{&job.CommitStatusRequested{Jobs: []string{"k", "j"}}, nil},
			{&job.Completed{CommitStatus: true}, wall(set("commit_status", "j", noon))},
			{&job.Cancelled{CommitStatus: true}, wall(set("commit_status", "j", noon))},
			{&job.Failed{CommitStatus: true}, wall(set("commit_status", "j", noon))},
			{&job.Completed{}, nil},
		}, nil},
		{"review", "job-j", []reaction{
			{review, first(wall(set("review", "j", noon)))},
			{plain, nil},
			{listless, nil},
		}, ends},
		{"loop_judge", "loop-l", []reaction{
			{&loop.Iterated{JobID: "j"}, first(wall(set("loop_judge", "l/j", noon.Add(time.Minute))))},
			{&loop.OutcomeRecorded{JobID: "j"}, cleared("loop_judge", "l/j")},
		}, nil},
		{"loop_judge", "job-j", []reaction{
			{&job.Completed{LoopID: "l"}, wall(set("loop_judge", "l/j", noon))},
			{&job.Cancelled{LoopID: "l"}, wall(set("loop_judge", "l/j", noon))},
			{&job.Failed{LoopID: "l"}, wall(set("loop_judge", "l/j", noon))},
			{&job.Completed{}, nil},
			{&job.Cancelled{}, nil},
			{&job.Failed{}, nil},
		}, nil},
		{"dispute", "job-j", []reaction{
			{&job.DisputeDecided{Decision: job.Refunded}, first(wall(set("dispute", "j", noon)))},
			{&job.DisputeDecided{Decision: job.Retested}, first(wall(set("dispute", "j", noon)))},
			{&job.DisputeDecided{Decision: job.Stands}, nil},
			{&job.DisputeDecided{Decision: job.Overturned}, nil},
		}, []domain.Event{&job.DisputeSettled{}}},
		{"loop_silence", "loop-l", []reaction{
			{&loop.Iterated{JobID: "j", At: ahead}, set("loop_silence", "l", ahead.Add(24*time.Hour))},
			{&loop.Ended{}, cleared("loop_silence", "l")},
		}, nil},
	} {
		rule := rule(c.kind)
		key := c.stream[slices.Index([]byte(c.stream), '-')+1:]
		for _, e := range c.clears {
			c.reactions = append(c.reactions, reaction{e, cleared(c.kind, key)})
		}
		for _, r := range c.reactions {
			name := c.kind + ": " + r.event.EventType()
			if !slices.Contains(rule.Handles, r.event.EventType()) {
				t.Errorf("%s is not handled", name)
			}
			got := rule.React(domain.Recorded{
				Stream: c.stream, Event: r.event, Type: r.event.EventType(),
				Meta: domain.Metadata{AccountID: "acc", Time: noon},
			})
			if !reflect.DeepEqual(got, r.want) {
				t.Errorf("%s %+v: got %+v, want %+v", name, r.event, got, r.want)
			}
		}
	}
}

func TestEveryPolicyHasTimersOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range policy.All(nil) {
		if seen[p.Kind] {
			t.Errorf("two policies have the timers %q", p.Kind)
		}
		seen[p.Kind] = true
	}
}

// asked records each command with its cause.
type asked struct {
	policy.Commands
	what  []string
	cause command.Cause
}

func (a *asked) did(c command.Cause, what string) (domain.Position, error) {
	a.what, a.cause = append(a.what, what), c
	return domain.Position{}, nil
}

func (a *asked) VoidJob(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "void "+id)
}

func (a *asked) RefundJob(_ context.Context, c command.Cause, id, reason string) (domain.Position, error) {
	return a.did(c, "refund "+id+" "+reason)
}

func (a *asked) ExpireLots(_ context.Context, c command.Cause) (domain.Position, error) {
	return a.did(c, "expire")
}

func (a *asked) MissSLA(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "miss "+id)
}

func (a *asked) ReleaseSilent(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "release "+id)
}

func (a *asked) ExpireQuestion(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "close "+id)
}

func (a *asked) WriteChecklist(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "list "+id)
}

func (a *asked) AnalyseJob(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "analyse "+id)
}

func (a *asked) ReviewJob(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "review "+id)
}

func (a *asked) SettleSession(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "settle "+id)
}

func (a *asked) RecordLoopOutcome(_ context.Context, c command.Cause, loopID, jobID string) (domain.Position, error) {
	return a.did(c, "outcome "+loopID+" "+jobID)
}

func (a *asked) AbandonLoop(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "abandon "+id)
}

func (a *asked) GoOnPlaying(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "play "+id)
}

func (a *asked) SettleArchive(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "archive "+id)
}

func (a *asked) SettleDispute(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "make good "+id)
}

func (a *asked) TellCommit(_ context.Context, c command.Cause, id string) (domain.Position, error) {
	return a.did(c, "tell "+id)
}

func TestEachTimerIssuesItsCommandOnBehalfOfItsCause(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"orphaned_debit": "void k", "missing_refund": "refund k job_ended", "lot_expiry": "expire",
		"sla": "miss k", "silent_claim": "release k", "question": "close k", "checklist": "list k", "analysis": "analyse k", "review": "review k",
		"session": "settle k", "loop_judge": "outcome k ", "loop_silence": "abandon k",
		"commit_status": "tell k", "archive": "archive k", "player": "play k", "dispute": "make good k",
	}
	ids := map[uuid.UUID]bool{}
	for _, p := range policy.All(&asked{}) {
		a := &asked{}
		for _, mine := range policy.All(a) {
			if mine.Kind != p.Kind {
				continue
			}
			timer := policy.Timer{
				Kind: p.Kind, Key: "k", AccountID: "acc", Sandbox: true, DueAt: noon, CauseID: "event-1", Position: 7, Attempt: 1,
			}
			for _, change := range []func(){
				func() {},
				func() { timer.Attempt, timer.Fence = 2, 9 }, // the same again
			} {
				change()
				must.NoError(t, mine.Fire(t.Context(), timer))
			}
			got := a.cause
			if len(a.what) != 2 || a.what[0] != want[p.Kind] || a.what[1] != a.what[0] {
				t.Errorf("%s asked for %q, want %q twice", p.Kind, a.what, want[p.Kind])
			}
			if expect := (command.Cause{
				CommandID: got.CommandID, CausationID: "event-1", Actor: "policy:" + p.Kind, AccountID: "acc",
				Sandbox: true, NotBefore: noon,
			}); got != expect {
				t.Errorf("%s: cause %+v, want %+v", p.Kind, got, expect)
			}
			repeat := got.CommandID
			timer.CauseID, timer.WallClock = "event-2", true
			must.NoError(t, mine.Fire(t.Context(), timer))
			if a.cause.CommandID == repeat || !a.cause.NotBefore.IsZero() {
				t.Errorf("%s: for another event the cause is %+v", p.Kind, a.cause)
			}
			ids[repeat], ids[a.cause.CommandID] = true, true
		}
	}
	if len(ids) != 2*len(want) {
		t.Errorf("%d ids of commands, want %d", len(ids), 2*len(want))
	}
}
