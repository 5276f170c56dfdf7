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
	WebhookAllow   guard.Allow
	targets        guard.Targets
	privateTargets bool
	hostedDomains  hosting.Domains
	pools          *pools.Reads
	lookups        *resolver
}

func NewLimits(s Settings, own *pools.Reads) *Limits {
	if s.HostedDomains == nil {
		s.HostedDomains = hosting.Known()
	}
	return &Limits{
		WebhookAllow: s.WebhookAllow, targets: s.Targets, privateTargets: s.PrivateTargets, hostedDomains: s.HostedDomains,
		pools: own, lookups: &resolver{resolve: s.Resolve, names: map[string]*lookup{}},
	}
}

// HostedApp says that the URL is that of an app on a platform.
func (l *Limits) HostedApp(url string) bool { return l.hostedDomains.Hosts(url) }

// CheckTarget checks a URL under test that was read at the path. A private host may not
// be tested until Admit has looked at it.
func CheckTarget(p *wire.Problems, path, raw string, t job.Type) {
	if raw == "" { // absent, or already noted
		return
	}
	err := guard.TargetURL(raw, guard.Targets{})
	if err != nil && !errors.Is(err, guard.ErrPrivate) {
		p.Add(path, "%s", err)
		return
	}
	p.Targets = append(p.Targets, wire.Target{Path: path, URL: raw, Private: err, Review: t.Automatic()})
}

// Admit lets the account test the private hosts that its checkers can reach
// (decisions, "URL under test").
func (l *Limits) Admit(ctx context.Context, accountID string, sandbox bool, p *wire.Problems) error {
	reached := sandbox || l.privateTargets
	for i, t := range p.Targets {
		if t.Private == nil || guard.TargetURL(t.URL, l.targets) == nil {
			p.Targets[i].Private = nil
			continue
		}
		if t.Review {
			continue
		}
		if !reached {
			pool, kept, err := l.pools.OfAccount(ctx, accountID)
			if err != nil {
				return err
			}
			if reached = kept && pool.AccountID == accountID; !reached {
				break
			}
		}
		p.Targets[i].Private = nil
	}
	return nil
}

// Admitted gives the refusal of a submission once all of it was read. The look-up of an
// accepted one's hosts begins meanwhile.
func (l *Limits) Admitted(ctx context.Context, c wire.Caller, p *wire.Problems) error {
	if err := l.Admit(ctx, c.AccountID, c.Sandbox, p); err != nil {
		return err
	}
	if err := p.Err(); err != nil {
		return err
	}
	l.lookUp(p)
	return nil
}

// lookUp begins to look up the hosts under test.
func (l *Limits) lookUp(p *wire.Problems) {
	for i, t := range p.Targets {
		if started := l.lookups.startLookup(guard.TargetName(t.URL)); started != nil {
			p.Targets[i].Missing = started.isMissing
		}
	}
}

// Unresolved warns a page of the hosts under test that have no address, before anything
// is charged.
func (l *Limits) Unresolved(ctx context.Context, p *wire.Problems) []domain.Detail {
	l.lookUp(p)
	return wire.Unresolved(ctx, p.Targets)
}

// AdmittedForm is Admitted for a page. A page shows messages but no hints, so the message
// holds the hint.
func (l *Limits) AdmittedForm(ctx context.Context, of people.Account, p *wire.Problems) error {
	if err := l.Admit(ctx, of.ID, of.Sandbox, p); err != nil {
		return err
	}
	for _, t := range p.Targets {
		if t.Private != nil {
			p.Add(t.Path, "%s; %s", t.Private, t.Hint())
		}
	}
	return p.Err()
}

// StillAllowed refuses the test of a URL that the account may no longer test.
func (l *Limits) StillAllowed(ctx context.Context, of people.Account, j jobs.Job) error {
	var p wire.Problems
	CheckTarget(&p, "url", j.URL, j.Type)
	return l.AdmittedForm(ctx, of, &p)
}
