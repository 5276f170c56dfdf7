package input

import (
	"context"
	"errors"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/internal/guard"
	"humanqa/internal/hosting"
	"humanqa/projections/jobs"
	"humanqa/projections/people"
	"humanqa/projections/pools"
)

// Settings are the permissions that an operator gives.
type Settings struct {
	// WebhookAllow are the private addresses that webhooks may go to all the same.
	WebhookAllow guard.Allow
	// Targets are the private hosts that any account may test, and that the service
	// itself may fetch.
	Targets guard.Targets
	// PrivateTargets says that checkers may reach any private host: this is a demo.
	PrivateTargets bool
	// HostedDomains are the domains of hosted-app platforms; nil for those that are
	// known.
	HostedDomains hosting.Domains
	// Resolve looks a name up, to warn of hosts under test that have no address; nil:
	// nothing is looked up.
	Resolve func(ctx context.Context, host string) error
}

// Limits are the checks of readers beside lengths: which URLs may be tested, and where
// webhooks may go.
type Limits struct {
	Settings

	pools   *pools.Reads
	lookups *resolver
}

func NewLimits(s Settings, own *pools.Reads) *Limits {
	if s.HostedDomains == nil {
		s.HostedDomains = hosting.Known()
	}
	return &Limits{Settings: s, pools: own, lookups: &resolver{resolve: s.Resolve, names: map[string]*lookup{}}}
}

// Target is a URL under test that was read; zero: there is none, or it was refused.
type Target struct {
	path    string
	url     string
	private error // why its host may not be tested, unless a checker can reach it; nil: it is public
	review  bool  // the service itself would fetch it
}

// How a private host can be tested, for the hint of its refusal.
const (
	PrivateHint = "a private host can be tested in a sandbox account, by an account whose tests are kept to its own pool of checkers, " +
		"under serve --demo, or within HUMANQA_TARGET_ALLOW"
	ReviewHint = "the service itself fetches the page of an AI Review: a private host must be within HUMANQA_TARGET_ALLOW"
)

func (t Target) hint() string {
	if t.review {
		return ReviewHint
	}
	return PrivateHint
}

// CheckTarget checks a URL under test that was read at the path. A private host may not
// be tested until the account was looked at (Admit).
func CheckTarget(p *wire.Problems, path, raw string, t job.Type) Target {
	if raw == "" { // absent, or already noted
		return Target{}
	}
	err := guard.TargetURL(raw, guard.Targets{})
	if err != nil && !errors.Is(err, guard.ErrPrivate) {
		p.Add(path, "%s", err)
		return Target{}
	}
	return Target{path, raw, err, t.Automatic()}
}

// refuse notes the targets on private hosts that no checker of the account can reach
// (decisions, "URL under test"), and gives the refusal of all that was read.
func (l *Limits) refuse(
	ctx context.Context, accountID string, sandbox bool, p *wire.Problems, targets []Target, note func(Target),
) error {
	reached := sandbox || l.PrivateTargets
	for _, t := range targets {
		if t.private == nil || guard.TargetURL(t.url, l.Targets) == nil {
			continue
		}
		if !t.review && !reached {
			pool, kept, err := l.pools.OfAccount(ctx, accountID)
			if err != nil {
				return err
			}
			reached = kept && pool.AccountID == accountID
		}
		if t.review || !reached {
			note(t)
		}
	}
	return p.Err()
}

// Admit gives the refusal of a request once all of it was read.
func (l *Limits) Admit(ctx context.Context, c wire.Caller, p *wire.Problems, targets ...Target) error {
	return l.refuse(ctx, c.AccountID, c.Sandbox, p, targets, func(t Target) { p.AddHinted(t.path, t.hint(), "%s", t.private) })
}

// Admitted is Admit that begins to look up the hosts of an accepted request, for the
// warnings of its answer.
func (l *Limits) Admitted(r *wire.Request, p *wire.Problems, targets ...Target) error {
	err := l.Admit(r.Context(), r.Caller, p, targets...)
	if err == nil {
		r.Unresolved = l.lookUp(targets)
	}
	return err
}

// AdmittedForm is Admit for a page. A page shows messages but no hints, so the message
// holds the hint.
func (l *Limits) AdmittedForm(ctx context.Context, of people.Account, p *wire.Problems, targets ...Target) error {
	return l.refuse(ctx, of.ID, of.Sandbox, p, targets, func(t Target) { p.Add(t.path, "%s; %s", t.private, t.hint()) })
}

// StillAllowed refuses the tests of a URL that the account may no longer test.
func (l *Limits) StillAllowed(ctx context.Context, of people.Account, tests ...jobs.Outline) error {
	var p wire.Problems
	return l.AdmittedForm(ctx, of, &p, wire.List(tests, func(j jobs.Outline) Target { return CheckTarget(&p, "url", j.URL, j.Type) })...)
}

// Unresolved warns a page of the hosts under test that have no address, before anything
// is charged.
func (l *Limits) Unresolved(ctx context.Context, targets ...Target) []domain.Detail {
	return l.lookUp(targets)(ctx)
}

// lookUp begins to look up the hosts under test. The function that it gives waits a moment,
// and warns of those that have no address.
func (l *Limits) lookUp(targets []Target) func(context.Context) []domain.Detail {
	begun := wire.List(targets, func(t Target) *lookup { return l.lookups.startLookup(guard.TargetName(t.url)) })
	return func(ctx context.Context) (warnings []domain.Detail) {
		for i, t := range targets {
			if begun[i] != nil && begun[i].isMissing(ctx) {
				warnings = append(warnings, domain.Detail{
					Path: t.path, Message: "the host does not resolve where this service runs; check its spelling",
				})
			}
		}
		return warnings
	}
}
