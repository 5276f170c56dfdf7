package wire

import (
	"context"

	"humanqa/domain"
)

// Target is a URL under test that was read.
type Target struct {
	Path string
	URL  string
	// Private is why its host may not be tested, unless a checker can reach it.
	Private error
	// Review says that the service itself would fetch it.
	Review bool
	// Missing waits a moment and says that its host has no address; nil: not looked up.
	Missing func(context.Context) bool
}

// How a private host can be tested, for the hint of its refusal.
const (
	PrivateHint = "a private host can be tested in a sandbox account, by an account whose tests are kept to its own pool of checkers, " +
		"under serve --demo, or within HUMANQA_TARGET_ALLOW"
	ReviewHint = "the service itself fetches the page of an AI Review: a private host must be within HUMANQA_TARGET_ALLOW"
)

// refuseTargets notes the private hosts that were not admitted.
func (p *Problems) refuseTargets() {
	for _, t := range p.Targets {
		if t.Private == nil {
			continue
		}
		p.Add(t.Path, "%s", t.Private)
		if p.hints == nil {
			p.hints = map[string]string{}
		}
		p.hints[t.Path] = t.Hint()
	}
}

// Hint is how the private host can be tested.
func (t Target) Hint() string {
	if t.Review {
		return ReviewHint
	}
	return PrivateHint
}

// Unresolved warns of the hosts under test that have no address.
func Unresolved(ctx context.Context, targets []Target) (warnings []domain.Detail) {
	for _, t := range targets {
		if t.Missing == nil || !t.Missing(ctx) {
			continue
		}
		warnings = append(warnings, domain.Detail{
			Path: t.Path, Message: "the host does not resolve where this service runs; check its spelling",
		})
	}
	return warnings
}
