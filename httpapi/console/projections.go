package console

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dustin/go-humanize"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/eventstore/node"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections"
	"humanqa/projections/auditlog"
	"humanqa/webhooks"
	"humanqa/webhooks/notices"
)

type projectionsView struct {
	Lines []projectionLine
	Head  string
	Skips []generation.Skipped
	Now   time.Time
	// Readers are open subscriptions of the embedded node, the slowest first; ReaderCount
	// is their number. OwnLog says that this process runs the node.
	Readers     []node.Subscription
	ReaderCount int
	OwnLog      bool
}

type projectionLine struct {
	consumer.Status
	Behind     bool
	Late       time.Duration // the age of the first event that it has not seen
	ETA        time.Duration // of a generation that is built; 0: not known
	Percent    int           // of the log, for a generation that is built
	Problem    string
	Notes      []string
	Rebuilding bool   // the next generation is built beside it
	MayRebuild bool   // it is a read model
	OwnerName  string // the machine and process that advance it
	Size       string // its size on disk; empty: no table
}

func (d console) projectionsPage(r *ui.Request) (ui.Answer, error) {
	ctx := r.Context()
	v := projectionsView{Now: d.Now()}
	head, err := d.Log.Head(ctx)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Head = head.String()
	if v.OwnLog = d.Subscriptions != nil; v.OwnLog {
		v.Readers, v.ReaderCount = d.Subscriptions()
	}
	all, err := d.Status(ctx)
	if err != nil {
		return ui.Answer{}, err
	}
	sizes, err := consumer.Sizes(ctx, d.DB)
	if err != nil {
		return ui.Answer{}, err
	}
	for _, s := range all {
		line := projectionLine{
			Status: s, Behind: s.Position.Compare(head) < 0, Problem: s.Problem(), Notes: s.Notes(),
			MayRebuild: slices.Contains(rebuildable(), s.Name) || generation.IsDeclared(s.Name)}
		line.OwnerName, _, _ = strings.Cut(s.Owner, "/") // the rest is an id for leases
		if size := sizes[s.Schema]; size > 0 {
			line.Size = humanize.Bytes(uint64(size))
		}
		line.Rebuilding = s.Serving && slices.ContainsFunc(all, func(o consumer.Status) bool { return o.Name == s.Name && !o.Serving })
		if line.Behind {
			if line.Late, err = d.Log.Late(ctx, s.Position, !s.Started, d.Now()); err != nil {
				return ui.Answer{}, err
			}
		}
		if !s.Serving {
			line.ETA = d.pace.eta(s, head, v.Now)
			if head.Commit > 0 {
				line.Percent = int(100 * min(s.Position.Commit, head.Commit) / head.Commit)
			}
		}
		v.Lines = append(v.Lines, line)
		skips, err := generation.Skips(ctx, d.DB, s.Name)
		if err != nil {
			return ui.Answer{}, err
		}
		if s.Serving {
			v.Skips = append(v.Skips, skips...)
		}
	}
	return show("console-projections", "Projections", v), nil
}

// rebuildable are the read models, and the audit's tree.
func rebuildable() []string { return append(projections.Names(), auditlog.Name) }

// pace remembers the position of each generation when it was first shown, to estimate the
// time that the rest of a rebuild takes.
type pace struct {
	mu   sync.Mutex
	seen map[string]mark // by schema
}

type mark struct {
	at     domain.Position
	moment time.Time
}

// maxPaces bounds the generations that pace remembers.
const maxPaces = 100

// eta extrapolates the time until the generation is built; 0 while it is not known.
func (p *pace) eta(s consumer.Status, head domain.Position, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	first, known := p.seen[s.Schema]
	if !known || s.Position.Compare(first.at) < 0 {
		if p.seen == nil || len(p.seen) >= maxPaces {
			p.seen = map[string]mark{}
		}
		p.seen[s.Schema] = mark{s.Position, now}
		return 0
	}
	moved, elapsed := s.Position.Commit-first.at.Commit, now.Sub(first.moment)
	if moved == 0 || elapsed <= 0 || s.Position.Compare(head) >= 0 {
		return 0
	}
	return time.Duration(float64(head.Commit-s.Position.Commit) / float64(moved) * float64(elapsed)).Round(time.Second)
}

// onProjection carries out a form about a consumer of the log.
func (d console) onProjection(
	r *ui.Request, act oversight.Act, known []string, detail string, do func(ctx context.Context, name string) error,
) (ui.Answer, error) {
	name := r.PathValue("name")
	if !slices.Contains(known, name) && !generation.IsDeclared(name) {
		return ui.Answer{}, domain.NotFound("projection")
	}
	err := d.act(r, command.OperatorAct{Act: act, Subject: name, Detail: detail},
		func(ctx context.Context, _ command.Cause) (domain.Position, error) {
			return domain.Position{}, do(ctx, name)
		})
	return ui.Go("/console/projections"), err
}

func (d console) rebuild(r *ui.Request) (ui.Answer, error) {
	return d.onProjection(r, oversight.Rebuild, rebuildable(), "", func(ctx context.Context, name string) error {
		return generation.RequestRebuild(ctx, d.DB, name)
	})
}

// stoppable are all consumers of the log.
func stoppable() []string { return append(rebuildable(), webhooks.SubscriberName, notices.Name) }

func (d console) retry(r *ui.Request) (ui.Answer, error) {
	return d.onProjection(r, oversight.Retry, stoppable(), "", func(ctx context.Context, name string) error {
		if _, err := d.failed(ctx, name); err != nil {
			return err
		}
		return generation.Retry(ctx, d.DB, name)
	})
}

// skip passes over the event that the form showed, and no other.
func (d console) skip(r *ui.Request) (ui.Answer, error) {
	at := r.PostFormValue("position")
	return d.onProjection(r, oversight.Skip, stoppable(), "the event at "+at, func(ctx context.Context, name string) error {
		failed, err := d.failed(ctx, name)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(failed, func(p domain.Position) bool { return p.String() == at })
		if i < 0 {
			return domain.Conflict("the projection no longer stops at %s", at).WithHint("load the page again")
		}
		return generation.Skip(ctx, d.DB, name, failed[i], "operator:"+r.Person.ID, strings.TrimSpace(r.PostFormValue("reason")))
	})
}

// failed are the events that stop a projection, or a stream of it.
func (d console) failed(ctx context.Context, name string) (at []domain.Position, err error) {
	if at, err = consumer.Failed(ctx, d.DB, name); err == nil && len(at) == 0 {
		err = domain.Conflict("%s is not stopped", name)
	}
	return at, err
}

type webhooksView struct {
	webhooks.Fleet
	All   bool
	Lines []webhookLine
	Pager ui.Pager
}

type webhookLine struct {
	webhooks.Endpoint
	Account string
}

func (d console) webhooks(r *ui.Request) (ui.Answer, error) {
	v := webhooksView{All: r.FormValue("show") == "all"}
	page := pageOf(r)
	fleet, list, err := d.Deliveries.Fleet(r.Context(), v.All, page.Limit, page.Offset)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Fleet = fleet
	ids := wire.List(list, func(e webhooks.Endpoint) string { return e.AccountID })
	names, err := d.Reads.Overall.AccountNames(r.Context(), ids)
	if err != nil {
		return ui.Answer{}, err
	}
	for _, e := range list {
		v.Lines = append(v.Lines, webhookLine{e, names[e.AccountID]})
	}
	total := v.Disabled + v.Failing
	if v.All {
		total = v.Endpoints
	}
	v.Pager = ui.NewPager(r, ui.PageOf(r), len(list), total)
	return show("console-webhooks", "Webhooks", v), nil
}
