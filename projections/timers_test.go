package projections

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/policy"
)

// Events of memoryLog happened long ago, so their timers are due at once.
const timerKind = "orphaned_debit"

// reachTimers waits until the timers' rows are as new as the log; WaitFor does
// not cover them.
func (w *world) reachTimers() {
	w.t.Helper()
	w.eventually("the timers are written", func() bool {
		return w.status("timers").Position.Compare(w.log.Head()) >= 0
	})
}

func (w *world) due(limit int, lease time.Duration) []policy.Timer {
	w.t.Helper()
	due, err := NewTimers(w.db).TakeDue(w.ctx(), []string{timerKind}, limit, lease)
	if err != nil {
		w.t.Fatal(err)
	}
	return due
}

func TestATimerIsSetByADebitAndClearedByItsJob(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append("credits-acc", &credits.Debited{JobID: "came"})
	w.log.append("job-came", &job.Created{AccountID: "acc"})
	w.log.append("credits-acc", &credits.Debited{JobID: "lost"})
	w.reachTimers()
	due := w.due(10, time.Minute)
	if len(due) != 1 || due[0].Key != "lost" || due[0].AccountID != "acc" {
		t.Fatalf("due: %+v, want the timer of lost", due)
	}

	t.Run("and by the refund", func(t *testing.T) {
		w.log.append("credits-acc", &credits.Refunded{JobID: "lost"})
		w.reachTimers()
		if due := w.due(10, 0); len(due) > 0 {
			t.Errorf("due: %+v, want nothing", due)
		}
	})
}

func TestATimerOfTheFutureIsNotDue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	w.log.append("credits-acc", &credits.Debited{JobID: "j"})
	w.log.mu.Lock()
	w.log.events[0].Meta.Time = time.Now()
	w.log.mu.Unlock()
	w.reachTimers()
	if due := w.due(10, time.Minute); len(due) > 0 {
		t.Errorf("due: %+v, want nothing", due)
	}
}

func TestALeasedTimerIsNobodyElsesUntilTheLeaseEnds(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	const timers = 200
	for i := range timers {
		w.log.append("credits-acc", &credits.Debited{JobID: string(rune('a'+i%26)) + time.Duration(i).String()})
	}
	w.reachTimers()

	var (
		mu    sync.Mutex
		taken = map[string]int{}
		nodes sync.WaitGroup
	)
	for range 8 {
		nodes.Go(func() {
			for {
				due, err := NewTimers(w.db).TakeDue(context.Background(), []string{timerKind}, 7, time.Hour)
				if err != nil {
					t.Error(err)
				}
				if err != nil || len(due) == 0 {
					return
				}
				mu.Lock()
				for _, d := range due {
					taken[d.Key]++
				}
				mu.Unlock()
			}
		})
	}
	nodes.Wait()
	// A node that finds nothing may stop while another is between its choice
	// and its lease: what is left is still nobody's.
	for _, d := range w.due(timers, time.Hour) {
		taken[d.Key]++
	}
	if len(taken) != timers {
		t.Errorf("%d timers were taken, want %d", len(taken), timers)
	}
	for key, n := range taken {
		if n != 1 {
			t.Errorf("%s was taken %d times", key, n)
		}
	}

	t.Run("and comes back then", func(t *testing.T) {
		if _, err := w.db.ExecContext(w.ctx(), "UPDATE policy.leases SET until = now() - interval '1 second'"); err != nil {
			t.Fatal(err)
		}
		if due := w.due(timers, time.Hour); len(due) != timers {
			t.Errorf("%d timers came back, want %d", len(due), timers)
		}
	})
}

// money records what the policies ask for, and answers as the domain would.
type money struct {
	mu    sync.Mutex
	log   *memoryLog
	fails int
	asked map[string]map[string]bool // by job: the ids of the commands
}

func (m *money) VoidJob(_ context.Context, cause command.Cause, jobID string) (domain.Position, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails > 0 {
		m.fails--
		return domain.Position{}, errors.New("no log")
	}
	if m.asked[jobID] == nil {
		m.asked[jobID] = map[string]bool{}
		m.log.append("job-"+jobID, &job.VoidedOrphan{AccountID: cause.AccountID})
		m.log.append("credits-"+cause.AccountID, &credits.Refunded{JobID: jobID})
	}
	m.asked[jobID][cause.CommandID.String()] = true
	return domain.Position{}, nil
}

func (m *money) RefundJob(context.Context, command.Cause, string, string) (domain.Position, error) {
	return domain.Position{}, nil
}

func TestPoliciesFireADueTimerUntilItsEffectClearsIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	m := &money{log: w.log, fails: 1, asked: map[string]map[string]bool{}}
	w.log.append("credits-acc", &credits.Debited{JobID: "lost"})

	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	var nodes sync.WaitGroup
	for range 2 {
		nodes.Go(func() { policy.Run(ctx, NewTimers(w.db), quiet, policy.All(m)...) })
	}
	defer nodes.Wait()
	defer cancel()

	// The first firing fails; its lease is cut short so that nobody waits.
	w.eventually("the failure is noted", func() bool {
		var n int
		err := w.db.GetContext(w.ctx(), &n, "SELECT count(*) FROM policy.leases WHERE last_error = 'no log'")
		return err == nil && n == 1
	})
	if _, err := w.db.ExecContext(w.ctx(), "UPDATE policy.leases SET until = now()"); err != nil {
		t.Fatal(err)
	}
	w.eventually("the timer is cleared", func() bool {
		var n int
		err := w.db.GetContext(w.ctx(), &n, "SELECT count(*) FROM readmodel.timers WHERE kind = $1", timerKind)
		return err == nil && n == 0 && w.log.Head().Commit == 3
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.asked["lost"]) != 1 {
		t.Errorf("commands: %v, want one id, however often it fired", m.asked["lost"])
	}
}
