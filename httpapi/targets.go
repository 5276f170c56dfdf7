package httpapi

import (
	"context"
	"errors"

	"humanqa/domain/job"
	"humanqa/internal/guard"
)

// target is a URL under test that was read.
type target struct {
	path string
	url  string
	// private is why its host may not be tested, unless a checker can reach it.
	private error
	// review says that the service itself would fetch it.
	review bool
	lookup *lookup // of its host; nil: not looked up
}

// How a private host can be tested, for the hint of its refusal.
const (
	privateHint = "a private host can be tested in a sandbox account, by an account whose tests are kept to its own pool of checkers, " +
		"under serve --demo, or within HUMANQA_TARGET_ALLOW"
	reviewHint = "the service itself fetches the page of an AI Review: a private host must be within HUMANQA_TARGET_ALLOW"
)

// target checks a URL under test. Whether a private host may be tested is not for
// the text to say: until admit has looked, it may not.
func (o object) target(name, raw string, t job.Type) {
	if raw == "" { // absent, or already noted
		return
	}
	err := guard.TargetURL(raw, guard.Targets{})
	if err != nil && !errors.Is(err, guard.ErrPrivate) {
		o.wrong(name, "%s", err)
		return
	}
	o.problems.targets = append(o.problems.targets, target{path: o.path + name, url: raw, private: err, review: t == job.AIReview})
}

// admit lets the account test the private hosts that its checkers can reach
// (decisions, "URL under test").
func (a *API) admit(ctx context.Context, accountID string, sandbox bool, p *problems) error {
	reached := sandbox || a.privateTargets
	for i, t := range p.targets {
		if t.private == nil || guard.TargetURL(t.url, a.targets) == nil {
			p.targets[i].private = nil
			continue
		}
		if t.review {
			continue
		}
		if !reached {
			pool, kept, err := a.reads.Pools.OfAccount(ctx, accountID)
			if err != nil {
				return err
			}
			if reached = kept && pool.AccountID == accountID; !reached {
				break
			}
		}
		p.targets[i].private = nil
	}
	return nil
}

// admitted is what a submission is refused for once all of it was read. The hosts of one
// that is not are looked up meanwhile.
func (a *API) admitted(r *request, p *problems) error {
	if err := a.admit(r.Context(), r.caller.accountID, r.caller.sandbox, p); err != nil {
		return err
	}
	if err := p.err(); err != nil {
		return err
	}
	for i, t := range p.targets {
		p.targets[i].lookup = a.lookups.start(guard.TargetName(t.url))
	}
	return nil
}

// refuseTargets notes the private hosts that nobody admitted.
func (p *problems) refuseTargets() {
	for _, t := range p.targets {
		if t.private == nil {
			continue
		}
		p.add(t.path, "%s", t.private)
		if p.hints == nil {
			p.hints = map[string]string{}
		}
		p.hints[t.path] = t.hint()
	}
}

// hint is how the private host can be tested.
func (t target) hint() string {
	if t.review {
		return reviewHint
	}
	return privateHint
}
