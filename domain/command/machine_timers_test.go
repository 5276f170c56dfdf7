package command_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/policy"
	"humanqa/domain/project"
	"humanqa/internal/testing/must"
)

// firing is a timer that was fired, and when for the first time.
type firing struct {
	policy.Timer
	at time.Time
}

// react keeps the timers as the projector does.
func (w *world) react(r domain.Recorded) {
	for _, rule := range policy.Rules() {
		if !slices.Contains(rule.Handles, r.Type) {
			continue
		}
		for _, c := range rule.React(r) {
			key := timerKey{c.Kind, c.Key}
			if c.Clear {
				delete(w.timers, key)
				continue
			}
			c.CauseID, c.Position, c.Attempt = r.ID.String(), int64(r.Position.Commit), 1
			c.Sandbox = slices.Contains(w.tenants, tenant{c.AccountID, true})
			w.timers[key] = c.Timer
			delete(w.rest, key)
		}
	}
}

// firesAt is when Postgres' clock gets to the timer.
func (w *world) firesAt(key timerKey) time.Time {
	t := w.timers[key]
	at := t.DueAt
	if t.Sandbox && !t.WallClock {
		at = at.Add(-w.ahead[t.AccountID])
	}
	if rest := w.rest[key]; at.Before(rest) {
		return rest
	}
	return at
}

// open are the timers that are not settled, the first due one first.
func (w *world) open() []timerKey {
	var keys []timerKey
	for key, t := range w.timers {
		if w.settled[key] != t.CauseID {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b timerKey) int {
		if c := w.firesAt(a).Compare(w.firesAt(b)); c != 0 {
			return c
		}
		return strings.Compare(a.kind+a.key, b.kind+b.key)
	})
	return keys
}

func (w *world) due() []timerKey {
	keys := w.open()
	return slices.DeleteFunc(keys, func(k timerKey) bool { return w.firesAt(k).After(w.now) })
}

// fire has a node act on a timer, and settles it as the runner does.
func (w *world) fire(t *rapid.T, i int, f *trouble, timer policy.Timer) {
	if !slices.ContainsFunc(w.fired, func(o firing) bool {
		return o.Kind == timer.Kind && o.Key == timer.Key && o.CauseID == timer.CauseID
	}) {
		w.fired = append(w.fired, firing{timer, w.now})
	}
	err := w.with(i, f, func(s *command.Service) error {
		for _, p := range policy.All(s) {
			if p.Kind == timer.Kind {
				return p.Fire(context.Background(), timer)
			}
		}
		return errors.New("no such policy")
	})
	key := timerKey{timer.Kind, timer.Key}
	current := w.timers[key].CauseID == timer.CauseID
	w.catchUp(t)
	var refusal *domain.Error
	switch {
	case !current:
	case err == nil, errors.As(err, &refusal) && refusal.Kind != domain.KindUnavailable:
		w.settled[key] = timer.CauseID
	default:
		w.rest[key] = w.now.Add(time.Second)
	}
}

// firings fires some of what is due, in any order, and some of it twice.
func (w *world) firings(t *rapid.T) {
	due := w.due()
	if len(due) == 0 {
		t.Skip("nothing is due")
	}
	for n := rapid.IntRange(1, min(len(due), 8)).Draw(t, "firings"); n > 0; n-- {
		due = slices.DeleteFunc(due, func(k timerKey) bool { _, set := w.timers[k]; return !set })
		if len(due) == 0 {
			return
		}
		timer := w.timers[rapid.SampledFrom(due).Draw(t, "timer")]
		w.fire(t, w.drawService(t), drawTrouble(t), timer)
		// A node whose lease has ended may still be at it.
		fresh := slices.DeleteFunc(slices.Clone(w.fired), func(o firing) bool { return w.now.Sub(o.at) > time.Minute })
		if len(fresh) > 0 && rapid.IntRange(0, 3).Draw(t, "once more") == 0 {
			w.fire(t, w.drawService(t), nil, rapid.SampledFrom(fresh).Draw(t, "old").Timer)
		}
	}
}

func (w *world) drawService(t *rapid.T) int { return rapid.IntRange(0, 1).Draw(t, "process") }

// settle fires whatever is due until nothing is, and expects that what is due
// within a minute is done.
func (w *world) settle(t *rapid.T) {
	clear(w.rest)
	for round := 0; ; round++ {
		due := w.due()
		if len(due) == 0 {
			break
		}
		if round > 1000 {
			t.Fatalf("the timers %v never come to rest", due)
		}
		w.fire(t, round%2, nil, w.timers[due[0]])
	}
	if findings := w.audit.Findings(w.now); len(findings) > 0 {
		t.Fatalf("once every timer has fired the audit finds %v", findings)
	}
	for id, j := range w.jobs {
		if j.Status == job.StatusClaimed && !job.IsRobot(j.CheckerID) && !w.now.Before(j.SignOfLife.Add(job.SilentAfter)) {
			key := timerKey{"silent_claim", id}
			t.Fatalf("job %s is claimed by somebody silent since %s, it is %s; the timer is %+v, settled for %q",
				id, j.SignOfLife, w.now, w.timers[key], w.settled[key])
		}
	}
}

// runDry lets time pass until nothing more happens by itself: then nothing is
// left over.
func (w *world) runDry(t *rapid.T) {
	w.ai.instant, w.ai.down = true, false
	for range 1000 {
		w.settle(t)
		next := w.open()
		if len(next) == 0 {
			break
		}
		w.pass(max(w.firesAt(next[0]).Sub(w.now), 0))
	}
	if next := w.open(); len(next) > 0 {
		t.Fatalf("%d timers are still set, the first is %v", len(next), w.timers[next[0]])
	}
	w.pass(3 * time.Hour) // also by the clock that is furthest behind everything has come that will
	if w.behind {
		w.sweep(t)
	}
	w.settle(t)
	w.check(t)
	w.wantAllEnded(t)
	w.wantNoFixLost(t)
	for _, e := range overreaching(w.log.All()) {
		t.Fatalf("%s has no right to %s in %s", e.Meta.Actor, e.Type, e.Stream)
	}
	before := w.seen
	for n, timer := range w.fired {
		w.fire(t, n%2, nil, timer.Timer)
		if w.seen > before {
			t.Fatalf("firing %v once more leads to %d events", timer, w.seen-before)
		}
	}
	w.wantFixesTakenAlong(t)
}

// wantFixesTakenAlong expects that the next test of a project takes along what
// no test has reported on.
func (w *world) wantFixesTakenAlong(t *rapid.T) {
	ended := func(status job.Status) func(string) bool {
		return func(id string) bool { return w.jobs[id].Status == status }
	}
	for _, a := range w.tenants {
		_, _, err := w.services[0].GrantCredits(ctx(), w.operator(), a.id, 100, nil, "")
		must.NoError(t, err)
		for _, projectID := range w.projects[a.id] {
			var waiting []string
			for _, fix := range w.sites[projectID].Queue {
				if !slices.ContainsFunc(fix.JobIDs, ended(job.StatusCompleted)) {
					waiting = append(waiting, fix.ID)
				}
			}
			_, _, err := w.services[0].ArchiveProject(ctx(), w.client(a), projectID, false, command.CancelledAtOnce)
			must.NoError(t, err)
			h, err := w.services[0].TestHosted(ctx(), w.client(a), command.HostedTest{
				Submission: job.Submission{
					URL: "https://shop.example", ProjectID: projectID, Source: "hosted", Type: job.Custom,
					TypeEcho: "custom",
				},
				Host: "shop.example",
			})
			w.catchUp(t)
			must.NoError(t, err)
			taken := slices.Sorted(slices.Values(w.created[h.JobID].Prepared))
			if slices.Sort(waiting); !slices.Equal(taken, waiting) {
				t.Fatalf("project %s: the fixes %v wait, the next test takes %v along", projectID, waiting, taken)
			}
		}
	}
}

// sweep records the end of lots. A process whose clock is behind gives a refund
// back to a lot that has expired: nobody can spend it, but nothing records that
// before the ledger's next change.
func (w *world) sweep(t *rapid.T) {
	for _, a := range w.tenants {
		c := w.client(a)
		c.NotBefore = w.now.Add(w.ahead[a.id])
		_, err := w.services[0].ExpireLots(ctx(), c)
		must.NoError(t, err)
	}
	w.catchUp(t)
}

func (w *world) wantAllEnded(t *rapid.T) {
	for id, j := range w.jobs {
		switch {
		case j.Status == job.StatusPending || j.Status == job.StatusClaimed:
			t.Fatalf("job %s is %s for ever", id, j.Status)
		case j.Status == job.StatusCompleted && j.AIReport == nil:
			t.Fatalf("job %s is never analysed", id)
		}
	}
	for id, s := range w.sessions {
		if !s.Closed() {
			t.Fatalf("session %s is %s for ever", id, s.Status)
		}
	}
	for id, l := range w.loops {
		if _, ended := l.Ends[l.Session.ID]; !ended {
			t.Fatalf("loop %s is %s for ever", id, l.Session.Status)
		}
	}
	for id, l := range w.ledgers {
		if due := l.Balance() - l.Available(w.now.Add(w.ahead[id])); due > 0 {
			t.Fatalf("%d credits of account %s have expired and are still counted", due, id)
		}
	}
}

// wantNoFixLost expects that a prepared fix waits, or that a test has reported
// on it.
func (w *world) wantNoFixLost(t *rapid.T) {
	reported := map[string]bool{}
	for _, id := range w.completed {
		for _, fix := range w.created[id].Prepared {
			reported[fix] = true
		}
	}
	for projectID, fixes := range w.fixes {
		for _, fix := range fixes {
			queued := slices.ContainsFunc(w.sites[projectID].Queue, func(f project.Fix) bool { return f.ID == fix.ID })
			if !queued && !reported[fix.ID] {
				t.Fatalf("the fix %q of project %s is gone, and nobody has tested it", fix.Key, projectID)
			}
			if w.forgotten[fix.ID] && !reported[fix.ID] {
				t.Fatalf("the fix %q of project %s counts as verified, and nobody has tested it", fix.Key, projectID)
			}
		}
	}
}
