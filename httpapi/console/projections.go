package console

import (
	"context"
	"slices"
	"strings"
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
	"humanqa/projections/overall"
	"humanqa/webhooks"
	"humanqa/webhooks/notices"
)

type projectionsView struct {
	Lines []projectionLine
	Head  string
	Skips []generation.Skipped
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
	Percent    int           // of the log, for a generation that is built
	Problem    string
	Notes      []string
	Rebuilding bool   // the next generation is built beside it
	MayRebuild bool   // it is a read model
	OwnerName  string // the machine and process that advance it
	Size       string // its size on disk; empty: no table
}

func (d Deps) projectionsPage(r *ui.Request) (ui.Answer, error) {
	ctx := r.Context()
	v := projectionsView{}
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
		if !s.Serving && head.Commit > 0 {
			line.Percent = int(100 * min(s.Position.Commit, head.Commit) / head.Commit)
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

// onProjection carries out a form about a consumer of the log.
func (d Deps) onProjection(
	r *ui.Request, act oversight.Act, known []string, detail string, do func(ctx context.Context, name string) error,
) (ui.Answer, error) {
	name := r.PathValue("name")
	if !slices.Contains(known, name) && !generation.IsDeclared(name) {
		return ui.Answer{}, domain.NotFound("projection")
	}
	err := d.act(r, r.Cause(), command.OperatorAct{Act: act, Subject: name, Detail: detail},
		func(ctx context.Context, _ command.Cause) (domain.Position, error) {
			return domain.Position{}, do(ctx, name)
		})
	return ui.Go("/console/projections"), err
}

func (d Deps) rebuild(r *ui.Request) (ui.Answer, error) {
	return d.onProjection(r, oversight.Rebuild, rebuildable(), "", func(ctx context.Context, name string) error {
		return generation.RequestRebuild(ctx, d.DB, name)
	})
}

// stoppable are all consumers of the log.
func stoppable() []string { return append(rebuildable(), webhooks.SubscriberName, notices.Name) }

func (d Deps) retry(r *ui.Request) (ui.Answer, error) {
	return d.onProjection(r, oversight.Retry, stoppable(), "", func(ctx context.Context, name string) error {
		if _, err := d.failed(ctx, name); err != nil {
			return err
		}
		return generation.Retry(ctx, d.DB, name)
	})
}

// skip passes over the event that the form showed, and no other.
func (d Deps) skip(r *ui.Request) (ui.Answer, error) {
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
func (d Deps) failed(ctx context.Context, name string) (at []domain.Position, err error) {
	if at, err = consumer.Failed(ctx, d.DB, name); err == nil && len(at) == 0 {
		err = domain.Conflict("%s is not stopped", name)
	}
	return at, err
}

type webhooksView struct {
	webhooks.Fleet
	All      bool
	Lines    []webhooks.Endpoint
	Accounts map[string]string // their names, by id
	Projects map[string]string
	Pager    ui.Pager
}

func (d Deps) webhooks(r *ui.Request) (ui.Answer, error) {
	v := webhooksView{All: r.FormValue("show") == "all"}
	page := pageOf(r)
	var err error
	if v.Fleet, v.Lines, err = d.Deliveries.Fleet(r.Context(), v.All, page.Limit, page.Offset); err != nil {
		return ui.Answer{}, err
	}
	accounts := wire.List(v.Lines, func(e webhooks.Endpoint) string { return e.AccountID })
	if v.Accounts, err = d.Reads.Overall.Names(r.Context(), overall.Accounts, accounts); err != nil {
		return ui.Answer{}, err
	}
	projects := wire.List(v.Lines, func(e webhooks.Endpoint) string { return e.ProjectID })
	if v.Projects, err = d.Reads.Overall.Names(r.Context(), overall.Projects, projects); err != nil {
		return ui.Answer{}, err
	}
	total := v.Disabled + v.Failing
	if v.All {
		total = v.Endpoints
	}
	v.Pager = ui.NewPager(r, ui.PageOf(r), len(v.Lines), total)
	return show("console-webhooks", "Webhooks", v), nil
}
