package command_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// TestNoHistoryOfCommandsBreaksTheLog sends every command there is, of two
// accounts and four checkers, through two processes whose clocks disagree, while
// time jumps, appends are lost or go unanswered, processes die in the middle of
// a command, clients repeat what they sent, and the policies' timers fire in any
// order, some twice. After every step the audit finds the log sound, what was
// answered is true of it, and nothing of one account is another's; in the end,
// once all timers have fired, nothing is left over (ARCHITECTURE.md, invariants
// 1 to 8).
func TestNoHistoryOfCommandsBreaksTheLog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"":        w.check,
			"time":    w.passTime,
			"clocks":  w.moveClocks,
			"restart": func(t *rapid.T) { w.restart(w.drawService(t)) },
			"model": func(t *rapid.T) {
				w.ai.instant, w.ai.down = rapid.Bool().Draw(t, "instant"), rapid.Bool().Draw(t, "down")
			},
			"timers":        w.firings,
			"more timers":   w.firings,
			"all timers":    w.settle,
			"grant":         w.grant,
			"submit":        w.submit,
			"bulk":          w.bulk,
			"hosted":        w.hosted,
			"loop":          w.looped,
			"deploy":        w.deploy,
			"prepare":       w.prepare,
			"project":       w.openProject,
			"archive":       w.archive,
			"retest":        w.retest,
			"cancel":        w.cancel,
			"fail":          w.fail,
			"rate":          w.rate,
			"dispute":       w.dispute,
			"rule":          w.rule,
			"finalize":      w.finalize,
			"session":       w.gather,
			"dissolve":      w.dissolve,
			"again":         w.again,
			"claim":         w.claim,
			"claim more":    w.claim,
			"work":          w.work,
			"more work":     w.work,
			"complete":      w.complete,
			"give up":       w.giveUp,
			"iterate":       w.iterate,
			"iterate more":  w.iterate,
			"more sessions": w.gather,
			"more ready":    w.allReady,
			"ready":         w.ready,
			"all ready":     w.allReady,
			"leave":         w.leave,
			"leave more":    w.leave,
			"advance":       w.advance,
			"play":          w.play,
			"robot asks":    w.robotAsks,
			"answer":        w.answer,
			"robots ready":  w.robotsReady,
			"close":         w.closeBook,
			"close again":   w.closeBook,
			"asked": func(t *rapid.T) {
				// By a clock of its own, or by none.
				w.asked = rapid.SampledFrom([]time.Time{{}, w.clock(0), w.clock(1)}).Draw(t, "asked at")
			},
		})
		w.runDry(t)
	})
}

// closeBook closes a ledger, through whatever befalls it.
func (w *world) closeBook(t *rapid.T) {
	a := w.drawTenant(t)
	c := w.client(a)
	c.Actor = "policy:close_book"
	err := w.with(w.drawService(t), drawTrouble(t), func(s *command.Service) error {
		_, err := s.CloseBook(ctx(), c)
		return err
	})
	for _, r := range w.catchUp(t) {
		if _, ok := r.Event.(*credits.Closed); !ok {
			t.Fatalf("a close writes %s into %s (%v)", r.Type, r.Stream, err)
		}
	}
}

func (w *world) passTime(t *rapid.T) {
	w.pass(rapid.SampledFrom([]time.Duration{
		time.Second, 10 * time.Second, 25 * time.Second, 2 * time.Minute, 7 * time.Minute,
		16 * time.Minute, 45 * time.Minute, 3 * time.Hour, 25 * time.Hour,
	}).Draw(t, "by"))
}

// moveClocks has the processes disagree about the time, in seconds or badly.
func (w *world) moveClocks(t *rapid.T) {
	skew := rapid.SampledFrom([]time.Duration{
		0, time.Second, -time.Second, 20 * time.Second, -20 * time.Second, 10 * time.Minute, -10 * time.Minute, -2 * time.Hour,
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skew = [2]time.Duration{skew.Draw(t, "first"), skew.Draw(t, "second")}
	w.behind = w.behind || min(w.skew[0], w.skew[1]) < 0
}

// check holds what the log adds up to against what must always be true of it.
// What may take a minute is asked of settle.
func (w *world) check(t *rapid.T) {
	w.catchUp(t)
	if findings := w.audit.Findings(time.Time{}); len(findings) > 0 {
		t.Fatalf("the audit finds %v", findings)
	}
	for id, l := range w.ledgers {
		if whole := w.unclosed[id]; whole.Balance() != l.Balance() || whole.Used() != l.Used() || l.Damage() != nil {
			t.Fatalf("account %s has %d left and used %d of its open book, of all %d and %d (%v)",
				id, l.Balance(), l.Used(), whole.Balance(), whole.Used(), l.Damage())
		}
		available := l.Available(w.now.Add(w.ahead[id]))
		if available < 0 || available > l.Balance() || l.Granted() != l.Balance()+l.Used()+l.Expired() {
			t.Fatalf("account %s was granted %d: %d are available of %d, %d used, %d expired",
				id, l.Granted(), available, l.Balance(), l.Used(), l.Expired())
		}
	}
	for id, j := range w.jobs {
		if (j.Status == job.StatusClaimed) != (j.CheckerID != "" && j.Report == nil) {
			t.Fatalf("job %s is %s and held by %q", id, j.Status, j.CheckerID)
		}
	}
}

// order is a call that its client repeats with the same command's id until it
// is answered, and perhaps after that.
type order struct {
	name string
	do   func(*command.Service) (any, error)
	// holds says what is wrong with the answer, given the log: nothing when it is
	// true of it.
	holds func(answer any, i int) string
	// refuses are the events that may come with a refusal.
	refuses []string
	// once: after it was answered a repeat writes nothing, however late.
	once    bool
	answer  any  // the first one, without what may change
	refused bool // the last time
}

// send sends a call through some process, through whatever befalls it.
func (w *world) send(t *rapid.T, o *order) (answer any, ok bool) {
	w.orders = append(w.orders, o)
	for tries := 0; ; tries++ {
		i, f := w.drawService(t), drawTrouble(t)
		answer, err := w.call(t, o, i, f)
		switch {
		case err == nil:
			return answer, true
		case !domain.IsKind(err, domain.KindUnavailable):
			return nil, false
		case tries == 3 || !rapid.Bool().Draw(t, "try again"):
			return nil, false
		}
	}
}

func (w *world) call(t *rapid.T, o *order, i int, f *trouble) (answer any, err error) {
	err = w.with(i, f, func(s *command.Service) (err error) {
		answer, err = o.do(s)
		return err
	})
	news := w.catchUp(t)
	if err != nil {
		o.refused = w.wantRefusal(t, o, f, err, news)
		return nil, err
	}
	if problem := o.holds(answer, i); problem != "" {
		t.Fatalf("%s answered %+v: %s", o.name, answer, problem)
	}
	if o.answer == nil {
		o.answer = lasting(answer)
		return answer, nil
	}
	if again := lasting(answer); !reflect.DeepEqual(again, o.answer) {
		t.Fatalf("%s answered first\n%+v, then\n%+v", o.name, o.answer, again)
	}
	if o.once && len(news) > 0 {
		t.Fatalf("%s was answered, and its repeat wrote %s into %s", o.name, news[0].Type, news[0].Stream)
	}
	return answer, nil
}

// wantRefusal expects that a call fails for want of the log or the model, or is
// refused and writes nothing.
func (w *world) wantRefusal(t *rapid.T, o *order, f *trouble, err error, news []domain.Recorded) (refused bool) {
	var refusal *domain.Error
	switch {
	case !errors.As(err, &refusal):
		t.Fatalf("%s breaks: %v", o.name, err)
	case refusal.Kind == domain.KindUnavailable:
		if (f == nil || !f.hit) && !w.ai.down {
			t.Fatalf("%s is not available, though nothing is: %v, %v", o.name, err, refusal.Cause)
		}
		return false
	}
	for _, r := range news {
		if !slices.Contains(o.refuses, r.Type) {
			t.Fatalf("%s is refused (%v) and writes %s into %s", o.name, err, r.Type, r.Stream)
		}
	}
	return true
}

// again repeats a call of long ago. A refusal is remembered for its client
// (package httpapi), as an answer is.
func (w *world) again(t *rapid.T) {
	orders := slices.DeleteFunc(slices.Clone(w.orders), func(o *order) bool { return o.refused })
	if len(orders) == 0 {
		t.Skip("nothing was asked yet")
	}
	open := slices.DeleteFunc(slices.Clone(orders), func(o *order) bool { return o.answer != nil })
	if len(open) > 0 && rapid.Bool().Draw(t, "open") {
		orders = open
	}
	o := rapid.SampledFrom(orders).Draw(t, "order")
	_, _ = w.call(t, o, w.drawService(t), drawTrouble(t))
}

// lasting is an answer without what a later repeat may see otherwise.
func lasting(answer any) any {
	switch a := answer.(type) {
	case command.SubmittedJob:
		return a.JobID
	case command.HostedJob:
		a.SubmittedJob = command.SubmittedJob{JobID: a.JobID, CreditsDeducted: a.CreditsDeducted, EstimatedMinutes: a.EstimatedMinutes}
		return a
	case command.SubmittedBatch:
		a.CreditsRemaining, a.Position = 0, domain.Position{}
		return a
	case command.PreparedFixes:
		return a.Descriptions
	case command.EndedJob:
		a.CreditsRemaining, a.Position = 0, domain.Position{}
		return a
	case command.CreatedSession:
		a.Status, a.CreditsRemaining, a.Position = "", 0, domain.Position{}
		return a
	case command.CancelledSession:
		a.CreditsRemaining, a.Position = 0, domain.Position{}
		return a
	case command.AdvancedClock:
		return a.Ahead
	}
	return answer
}

func ctx() context.Context { return context.Background() }
