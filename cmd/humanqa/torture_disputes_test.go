package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/eventually"
)

// contest is a disputed verdict as far as it was acknowledged.
type contest struct {
	id, jobID string
	ruling    job.Ruling // that an operator will say
	answered  bool
	ready     bool // no answer comes any more
	decided   bool
}

// disputing makes a load in which clients dispute verdicts, checkers answer and an operator
// decides.
func (l *load) disputing() {
	l.contests, l.copied = map[string]*contest{}, map[string]bool{}
	l.workers.Go(l.decideDisputes)
}

// dispute has the client dispute a verdict of the report, and the checker answer, or leave
// that.
func (l *load) dispute(id, checker, item string, dice *rand.Rand) {
	ruling := job.Rulings()[dice.IntN(len(job.Rulings()))]
	l.mu.Lock()
	client := l.jobs[id]
	switch {
	case ruling == job.Retested && l.erasing[id]:
		ruling = job.Stands // a new test would keep the words that go
	case ruling == job.Retested:
		l.copied[id] = true
	}
	l.mu.Unlock()
	if client == "" { // the submission is not acknowledged yet, or it is a new test of another dispute
		return
	}
	of := "/v1/jobs/" + id + "/disputes"
	r := l.settled("POST", of, client, map[string]any{"itemId": item, "reason": "It works here."}, "Idempotency-Key", "dispute-"+id)
	if r.status != http.StatusCreated {
		l.undisputed("dispute a verdict of", id, r)
		return
	}
	c := &contest{id: r.text("id"), jobID: id, ruling: ruling, ready: true}
	if dice.IntN(3) > 0 {
		r = l.settled("POST", "/v1/checker/jobs/"+id+"/disputes/"+c.id+"/answer", checker, map[string]any{"text": "It did not."})
		if c.answered = r.status == http.StatusOK; !c.answered {
			l.undisputed("answer a dispute of", id, r)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.contests[c.id] = c
}

// undisputed reports a refusal, unless the job was erased meanwhile.
func (l *load) undisputed(what, id string, r reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.status != http.StatusConflict || !l.erasing[id] {
		l.t.Errorf("%s %s: %d %s", what, id, r.status, r.body)
	}
}

// decideDisputes has an operator decide whatever waits for it.
func (l *load) decideDisputes() {
	for l.going() {
		var open []*contest
		l.mu.Lock()
		for _, c := range l.contests {
			if c.ready && !c.decided {
				open = append(open, c)
			}
		}
		l.mu.Unlock()
		if len(open) == 0 {
			time.Sleep(20 * time.Millisecond) // until clients have disputed more
			continue
		}
		l.operates(func(ctx context.Context, core *service.Core) error {
			for _, c := range open {
				if err := l.decide(ctx, core, c); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

func (l *load) decide(ctx context.Context, core *service.Core, c *contest) error {
	st, err := core.Commands.Job(ctx, c.jobID)
	if err == nil {
		_, err = core.Commands.RuleDispute(ctx, service.OperatorCause(st.AccountID), c.jobID, c.id, c.ruling)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.erasing[c.jobID] && domain.IsKind(err, domain.KindConflict) {
		c.ready = false
		return nil
	}
	c.decided = err == nil
	return err
}

// checkDisputes holds the disputes against what was acknowledged. It counts the new tests that
// they led to, by the client's key.
func (l *load) checkDisputes() (made map[string]int) {
	l.t.Helper()
	made = map[string]int{}
	for _, c := range l.contests {
		key := l.jobs[c.jobID]
		eventually.Within(l.t, eventually.Patience, func() error { // a policy makes the test good soon
			list := l.call(http.StatusOK, "GET", "/v1/jobs/"+c.jobID+"/disputes", key, nil).list("disputes")
			if len(list) != 1 {
				return fmt.Errorf("%s has %d disputes, want 1", c.jobID, len(list))
			}
			d, _ := list[0].(map[string]any)
			decision := map[bool]any{true: string(c.ruling)}[c.decided]
			if d["id"] != c.id || (d["answer"] != nil) != c.answered || d["decision"] != decision {
				return fmt.Errorf("the answer (%t) and the decision (%v) were acknowledged: %v", c.answered, decision, d)
			}
			refund := map[bool]any{true: 5.0, false: 0.0}[c.decided && c.ruling == job.Refunded]
			if d["creditsRefunded"] != refund {
				return fmt.Errorf("%v credits came back, want %v: %v", d["creditsRefunded"], refund, d)
			}
			again := c.decided && c.ruling == job.Retested
			if (d["retestJobId"] != nil) != again {
				return fmt.Errorf("the new test is %v, want one: %t", d["retestJobId"], again)
			}
			if again {
				made[key]++
			}
			return nil
		})
	}
	return made
}
