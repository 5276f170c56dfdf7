package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/fsck"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/cmd/humanqa/service/models"
	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/oversight"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/projections"
	"humanqa/projections/auditlog"
	"humanqa/projections/declared"
	"humanqa/webhooks"
	"humanqa/webhooks/notices"
)

type projectionsListCmd struct{}

func (c *projectionsListCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	head, err := core.Log.Head(ctx)
	if err != nil {
		return err
	}
	listed, err := models.List(ctx, core, head, func(name string) bool { return oneOf(name, "", following()) == nil })
	if err != nil {
		return err
	}
	return a.print(map[string]any{"head": head.String(), "projections": listed}, "%s", models.Text(listed))
}

// following names every consumer of the log in this binary.
func following() []string {
	return append(projections.Names(), auditlog.Name, webhooks.SubscriberName, notices.Name)
}

// stoppable is the argument of retry and skip.
type stoppable struct {
	Name string `arg:"" help:"The name of the stopped consumer, or of the one that set a stream aside, as projections list shows it."`
}

// Validate is called by kong.
func (n stoppable) Validate() error {
	return oneOf(n.Name, "nothing that follows the log", following())
}

// oneOf refuses a name that is neither known nor a declared projection's.
func oneOf(name, otherwise string, known []string) error {
	if !slices.Contains(known, name) && !generation.IsDeclared(name) {
		return fmt.Errorf("%q is %s: there are %s", name, otherwise, strings.Join(known, ", "))
	}
	return nil
}

type projectionsRebuildCmd struct {
	auditTrail `embed:""`
	Name       string `arg:"" optional:"" help:"The read model's name, as projections list shows it."`
	All        bool   `help:"Every read model, with one pass over the log. An interrupted rebuild continues."`
	Detach     bool   `xor:"how" help:"Only order it; the service builds it, now or when it starts."`
	DryRun     bool   `xor:"how" help:"Build nothing: fold the log beside the rows that serve, and show the differences. Exit 1 if there are any."`
}

// Validate is called by kong.
func (c *projectionsRebuildCmd) Validate() error {
	if c.All != (c.Name == "") {
		return errors.New("name one read model, or --all")
	}
	if c.All {
		return nil
	}
	return oneOf(c.Name, "no read model", rebuildable())
}

// rebuildable are the read models, and the audit's tree.
func rebuildable() []string { return append(projections.Names(), auditlog.Name) }

// Run builds the read models and reports the progress. This process or the running
// service builds them, whichever leases them first. After an interrupt the service
// continues a half build, or the same command does.
func (c *projectionsRebuildCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	names, subject := []string{c.Name}, c.Name
	if c.All {
		names, subject = rebuildable(), "every read model"
	}
	feed := eventstore.NewFeed(core.Log, logging.Quiet(a.log))
	consumers := append(projections.All(), auditlog.Projector{})
	if generation.IsDeclared(c.Name) {
		var err error
		if consumers, err = declared.Projections(ctx, core.DB, feed); err != nil {
			return err
		}
	}
	supervisor := consumer.New(core.DB, feed, logging.Quiet(a.log), consumers...)
	if c.DryRun {
		return a.compare(ctx, core, supervisor, names)
	}
	return c.recordOnProjection(ctx, core, oversight.Rebuild, subject, func() error {
		if c.Detach {
			return a.orderRebuilds(ctx, core, names)
		}
		reading, stop := context.WithCancel(ctx)
		read := make(chan error, 1)
		go func() { read <- feed.Run(reading) }()
		err := a.rebuild(ctx, supervisor, names)
		stop()
		return errors.Join(err, <-read)
	})
}

func (a *app) orderRebuilds(ctx context.Context, core *service.Core, names []string) error {
	for _, name := range names {
		if err := generation.RequestRebuild(ctx, core.DB, name); err != nil {
			return err
		}
		if err := a.ordered(name, "rebuild ordered", "follow it with humanqa projections list"); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) rebuild(ctx context.Context, supervisor *consumer.Supervisor, names []string) error {
	told := time.Now() // short builds tell only that they are done
	var failed error
	err := supervisor.RebuildAll(ctx, names, func(p consumer.Progress) {
		switch {
		case p.Done:
			failed = errors.Join(failed, a.ordered(p.Name, "rebuilt", "it serves from now on"))
		case !a.json && time.Since(told) >= time.Second/time.Duration(len(names)):
			told = time.Now()
			_ = a.print(nil, "%s: generation %d, %d events, at %s of %s, %.0f events/s, %s to go", // progress only
				p.Name, p.Generation, p.Applied, p.Position, p.Head, p.EventsPerSecond, p.ETA.Round(time.Second))
		}
	})
	return errors.Join(err, failed)
}

// compare lists the rows that a rebuild would change.
func (a *app) compare(ctx context.Context, core *service.Core, supervisor *consumer.Supervisor, names []string) error {
	findings := []audit.Finding{}
	differences, err := supervisor.VerifyAll(ctx, names)
	if err != nil {
		return err
	}
	aside, err := fsck.SetAside(ctx, core.DB, names)
	if err != nil {
		return err
	}
	for i, name := range names {
		findings = append(findings, fsck.RowFindings(name, differences[i])...)
	}
	if len(findings) > 0 {
		err = fmt.Errorf("a rebuild would change %d rows: humanqa fsck looks further", len(findings))
	}
	told := linesOf(slices.Concat(aside, findings)) // a rebuild would set aside these streams again, or apply them
	return a.conclude(struct {
		Findings []audit.Finding `json:"findings"`
		SetAside []audit.Finding `json:"setAside,omitempty"` // streams that the rows go on without
	}{findings, aside}, append(told, fmt.Sprintf("%s: %d rows are not what the log says", strings.Join(names, ", "), len(findings))), err)
}

type projectionsRetryCmd struct {
	auditTrail `embed:""`
	stoppable  `embed:""`
}

func (c *projectionsRetryCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	err := c.recordOnProjection(ctx, core, oversight.Retry, c.Name, func() error { return generation.Retry(ctx, core.DB, c.Name) })
	if err != nil {
		return err
	}
	return a.ordered(c.Name, "resumed", "it tries its events again")
}

type projectionsSkipCmd struct {
	stoppable `embed:""`

	Position string `help:"The event's, as projections list shows it, where several are set aside."`
	Reason   filled `required:"" help:"Why the event may be left out; kept on record."`
	By       filled `default:"operator" help:"The operator's name, for the record."`
}

func (c *projectionsSkipCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	of := auditTrail{By: c.By, Reason: c.Reason}
	if err := of.recordOnProjection(ctx, core, oversight.Skip, c.Name, func() error { return c.skip(ctx, core) }); err != nil {
		return err
	}
	return a.ordered(c.Name, "resumed", "it passes over the event")
}

// skip skips an event that stopped the consumer, or that was set aside: the only one, or
// the one that is named.
func (c *projectionsSkipCmd) skip(ctx context.Context, core *service.Core) error {
	failed, err := consumer.Failed(ctx, core.DB, c.Name)
	if err != nil {
		return err
	}
	failed = slices.DeleteFunc(failed, func(at domain.Position) bool { return c.Position != "" && at.String() != c.Position })
	switch {
	case len(failed) == 0:
		return fmt.Errorf("%s is not stopped there, and has nothing set aside: humanqa projections list", c.Name)
	case len(failed) > 1:
		return fmt.Errorf("%s has %d events to skip: name one with --position", c.Name, len(failed))
	}
	return generation.Skip(ctx, core.DB, c.Name, failed[0], string(c.By), string(c.Reason))
}

type projectionsDropCmd struct {
	auditTrail `embed:""`
	Name       string `arg:"" help:"The name of a declared projection, or of a read model that no binary runs any more."`
}

// Validate is called by kong.
func (c *projectionsDropCmd) Validate() error {
	if slices.Contains(following(), c.Name) {
		return fmt.Errorf("this binary runs %s: projections rebuild builds it anew", c.Name)
	}
	return nil
}

func (c *projectionsDropCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	err := c.recordOnProjection(ctx, core, oversight.Drop, c.Name, func() error {
		if known, err := c.dropDeclared(ctx, core); known || err != nil {
			return err
		}
		return generation.Drop(ctx, core.DB, c.Name)
	})
	if err != nil {
		return err
	}
	return a.ordered(c.Name, "dropped", "its rows, views and checkpoint are gone")
}

func (a *app) ordered(name, status, next string) error {
	return a.print(map[string]any{"name": name, "status": status}, "%s: %s, %s", name, status, next)
}
