package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// ledger is the credits that are used, and the amounts that the read models may show.
type ledger struct {
	used  shown[int]
	voids int // charges that the policy may have given back, and that come again
}

// givenBackAfter is less than the time after which the policy gives back a charge without
// its job. A submission that takes longer may have been charged, refunded, and charged again.
const givenBackAfter = 15 * time.Second

// ledgerOperations are the calls of one account that concern its ledger.
func (h *History) ledgerOperations(account string, calls []Call, late func(string) bool) (ops []porcupine.Operation) {
	cancels := map[string][]Call{}
	add := func(c Call, in step) {
		ops = append(ops, operation(c, in))
		if in.id != 0 {
			in.part = shows
			ops = append(ops, operation(c, in))
		}
	}
	owes := func(c Call) int {
		if late(c.Request) {
			return 0
		}
		return len(ops) + 1
	}
	for _, c := range calls {
		switch {
		case c.Kind == Cancel:
			cancels[c.Job] = append(cancels[c.Job], c)
		case c.Kind == ReadCredits && c.Outcome == Done, c.Kind == Submit && c.Outcome == Short, c.Kind == Submit && c.Outcome == Unknown:
			add(c, step{})
		case c.Kind == Submit && c.Outcome == Abandoned:
			add(c, step{id: 0})
			ops = append(ops, operation(c, step{part: void}))
		case c.Kind == Submit && c.Outcome == Done:
			add(c, step{id: owes(c)})
			if h.gave[account] && c.End-c.Begin > int64(givenBackAfter) {
				c.Outcome = Unknown
				ops = append(ops, operation(c, step{part: void}), operation(c, step{part: again}))
			}
		}
	}
	for _, of := range cancels {
		c, found := cancelOf(of)
		if status, known := h.ended[c.Job]; known && status != cancelled && c.Outcome == Unknown {
			continue
		}
		if found {
			in := step{part: refund}
			if c.Outcome == Done {
				in.id = owes(c)
			}
			add(c, in)
		}
	}
	return ops
}

// cancelOf joins all attempts to cancel one job into one call: it refunds once, at the
// earliest at the first attempt that may have had an effect. found is false if each was
// refused.
func cancelOf(attempts []Call) (one Call, found bool) {
	slices.SortFunc(attempts, func(a, b Call) int { return int(a.End - b.End) })
	for _, c := range attempts {
		switch {
		case c.Outcome != Done && c.Outcome != Unknown:
			continue
		case !found:
			one, found = c, true
		case one.Outcome == Done:
			one.Begin = min(one.Begin, c.Begin)
		default:
			begin := min(one.Begin, c.Begin)
			one = c
			one.Begin = begin
		}
	}
	return one, found
}

func ledgerModel(granted, price int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return ledger{used: showing(0)} },
		Step: func(state, in, _ any) (bool, any) {
			return state.(ledger).step(in.(step), granted, price)
		},
		Equal: func(a, b any) bool {
			x, y := a.(ledger), b.(ledger)
			return x.voids == y.voids && x.used.equal(y.used)
		},
		DescribeOperation: func(in, _ any) string {
			s := in.(step)
			return fmt.Sprintf("%s %s %.8s: %s, used %d, available %d, short %d", s.Kind, s.part, s.Job, s.Outcome, s.Used, s.Available, s.Lacking)
		},
		DescribeState: func(state any) string {
			used := state.(ledger).used
			return fmt.Sprintf("%d of %d used; may show %d", used.last(), granted, used.values)
		},
	}
}

func (l ledger) step(in step, granted, price int) (ok bool, next ledger) {
	used := l.used.last()
	balance := granted - used
	next = l
	switch {
	case in.part == shows:
		ok, next.used = l.used.pay(in.id)
		return ok, next
	case in.Kind == ReadCredits:
		ok, next.used = l.used.read(in.Used)
		return ok && in.Available == granted-in.Used && in.Available >= 0, next
	case in.Outcome == Short:
		return balance < price && in.Lacking == price-balance, l
	case in.part == refund, in.part == void:
		ok, used = used >= price, used-price
	default:
		ok, used = balance >= price, used+price
	}
	next.used = l.used.write(used).owe(in.id)
	if in.Outcome != Unknown {
		return ok, next
	}
	// It may never take effect: then it comes last, and has no effect if the state allows none.
	if !ok {
		next.used = l.used
	}
	switch in.part {
	case void:
		next.voids++
	case again:
		next.voids--
		return l.voids > 0, next
	}
	return true, next
}
