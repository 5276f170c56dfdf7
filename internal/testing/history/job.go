package history

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// The states of a job, as answers name them. Before its submission it is absent.
const (
	pending   = "pending"
	claimed   = "claimed"
	completed = "completed"
	cancelled = "cancelled"
	absent    = ""
)

// jobState is a job of the log, and the states that the read models may show of it.
type jobState struct {
	status  shown[string]
	checker string // of the current claim, or else of the last one
	token   int    // of the last claim
}

// jobOperations are the calls about one job, its submission as one.
func jobOperations(calls []Call, late func(string) bool) (ops []porcupine.Operation) {
	for i, c := range calls {
		in := step{id: i + 1}
		if c.Outcome != Done || c.Kind == ReadJob || late(c.Request) {
			in.id = 0
		}
		if c.Kind == ReadJob && c.Outcome != Done && c.Outcome != Absent {
			continue
		}
		ops = append(ops, operation(c, in))
		if in.id != 0 {
			in.part = shows
			ops = append(ops, operation(c, in))
		}
	}
	return ops
}

func jobModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return jobState{status: showing(absent)} },
		Step: func(state, in, _ any) (bool, any) {
			return state.(jobState).step(in.(step))
		},
		Equal: func(a, b any) bool {
			x, y := a.(jobState), b.(jobState)
			return x.checker == y.checker && x.token == y.token && x.status.equal(y.status)
		},
		DescribeOperation: func(in, _ any) string {
			s := in.(step)
			return fmt.Sprintf("%s %s%s %d: %s %s", s.Kind, s.part, s.Checker, s.Token, s.Outcome, s.Status)
		},
		DescribeState: func(state any) string {
			s := state.(jobState)
			return fmt.Sprintf("%s by %s, token %d; may show %q", s.status.last(), s.checker, s.token, s.status.values)
		},
	}
}

func (s jobState) step(in step) (bool, jobState) {
	switch {
	case in.part == shows:
		ok, status := s.status.pay(in.id)
		s.status = status
		return ok, s
	case in.Outcome == Absent:
		ok, status := s.status.read(absent)
		s.status = status
		return ok, s
	case in.Kind == ReadJob:
		ok, status := s.status.read(in.Status)
		s.status = status
		return ok, s
	}
	applies, next := s.apply(in)
	switch in.Outcome {
	case Done:
		next.status = next.status.owe(in.id)
		return applies, next
	case Unknown: // it takes effect here, or has none: then it comes last
		if !applies {
			next = s
		}
		return true, next
	}
	return !applies, s
}

// apply says whether the log takes a write now, and the job after it. A repeat changes
// nothing.
func (s jobState) apply(in step) (bool, jobState) {
	status := s.status.last()
	own := s.checker == in.Checker && s.token == in.Token
	to := func(status string) (bool, jobState) {
		s.status = s.status.write(status)
		return true, s
	}
	switch {
	case in.Kind == Submit && status == absent:
		return to(pending)
	case in.Kind == Cancel && status == pending:
		return to(cancelled)
	case in.Kind == Cancel && status == cancelled:
		return true, s
	case in.Kind == Claim && status == pending && (in.Outcome != Done || in.Token == s.token+1):
		s.checker, s.token = in.Checker, s.token+1
		return to(claimed)
	case in.Kind == Claim && status == claimed && s.checker == in.Checker && (in.Outcome != Done || in.Token == s.token):
		return true, s
	case in.Kind == Release && status == claimed && own:
		return to(pending)
	case in.Kind == Release && status == pending && own:
		return true, s
	case in.Kind == Complete && status == claimed && own:
		return to(completed)
	case in.Kind == Complete && status == completed && own:
		return true, s
	}
	return false, s
}
