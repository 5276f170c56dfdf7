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
	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/oversight"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/projections"
	"humanqa/projections/auditlog"
	"humanqa/webhooks"
	"humanqa/webhooks/notices"
)

type projectionsListCmd struct{}

// listedProjection is one generation of the JSON form.
type listedProjection struct {
	Name       string         `json:"name"`
	Version    int            `json:"version"`
	Generation int            `json:"generation"`
	Status     string         `json:"status"`
	Serving    bool           `json:"serving"`
	Position   string         `json:"position"`   // commit/prepare of the last event seen
	Lag        uint64         `json:"lag"`        // positions behind the log's end: events or, of an original server, bytes
	LagSeconds float64        `json:"lagSeconds"` // age of the first event that it has not seen
	Applied    int64          `json:"applied"`
	Unknown    int64          `json:"unknown"`
	Skipped    int64          `json:"skipped"`
	UpdatedAt  time.Time      `json:"updatedAt"`
	Owner      string         `json:"owner,omitempty"` // machine:process/id of who runs it
	Failure    *listedFailure `json:"failure"`
	Obstacle   string         `json:"obstacle,omitempty"` // what keeps a rebuilt one from being shown
	SetAside   []listedAside  `json:"setAside,omitempty"` // the streams that it goes on without
	Notes      []string       `json:"notes,omitempty"`
}

// listedAside is a stream that was set aside, by its first event that could not be applied.
type listedAside struct {
	Stream string `json:"stream"`
	Type   string `json:"type"`
	listedFailure
	At  time.Time `json:"at"`
	Due time.Time `json:"due"` // when it is tried again
}

type listedFailure struct {
	Position string `json:"position"`
	Category string `json:"category"`
	Detail   string `json:"detail"`
	Attempts int    `json:"attempts"`
}

// runBy is the owner without the id, which tells apart the parts of one process.
func (l listedProjection) runBy() string {
	process, _, _ := strings.Cut(l.Owner, "/")
	if process == "" {
		return "nobody"
	}
	return process
}

func (c *projectionsListCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	head, err := core.Log.Head(ctx)
	if err != nil {
		return err
	}
	listed, err := listProjections(ctx, core, head)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%-10s %7s %10s  %-8s %7s %12s %8s %10s  %s",
		"name", "version", "generation", "status", "serving", "position", "behind", "applied", "owner")
	for _, l := range listed {
		fmt.Fprintf(&text, "\n%-10s %7d %10d  %-8s %7t %12s %8s %10d  %s",
			l.Name, l.Version, l.Generation, l.Status, l.Serving, l.Position, lagText(l.LagSeconds), l.Applied, l.runBy())
		if f := l.Failure; f != nil {
			fmt.Fprintf(&text, "\n  stopped at %s (%s, tried %d times): %s", f.Position, f.Category, f.Attempts, f.Detail)
		}
		if l.Obstacle != "" {
			fmt.Fprintf(&text, "\n  cannot be shown: %s", l.Obstacle)
		}
		for _, note := range l.Notes {
			fmt.Fprintf(&text, "\n  note: %s", note)
		}
		for _, s := range l.SetAside {
			fmt.Fprintf(&text, "\n  set aside: %s, from its %s at %s on (%s, tried %d times): %s", s.Stream, s.Type, s.Position,
				s.Category, s.Attempts, s.Detail)
		}
	}
	return a.print(map[string]any{"head": head.String(), "projections": listed}, "%s", text.String())
}

func listProjections(ctx context.Context, core *service.Core, head domain.Position) ([]listedProjection, error) {
	all, err := consumer.List(ctx, core.DB)
	if err != nil {
		return nil, err
	}
	var listed []listedProjection
	for _, s := range all {
		s.Foreign = !slices.Contains(following(), s.Name)
		l := listedProjection{
			Name: s.Name, Version: s.Version, Generation: s.Number, Status: string(s.State), Serving: s.Serving,
			Position: s.Position.String(), Lag: behind(s.Position, head),
			Applied: s.Applied, Unknown: s.Unknown, Skipped: s.Skipped, UpdatedAt: s.UpdatedAt.UTC(), Owner: s.Owner,
		}
		if l.Lag > 0 {
			late, err := core.Log.Late(ctx, s.Position, !s.Started, core.Clock.Now())
			if err != nil {
				return nil, err
			}
			l.LagSeconds = late.Seconds()
		}
		l.Obstacle, l.Notes = logging.OneLine(s.Obstacle), s.Notes()
		for _, a := range s.SetAside {
			l.SetAside = append(l.SetAside, listedAside{
				Stream: a.Stream, Type: a.Type, At: a.At, Due: a.Due,
				listedFailure: listedFailure{Position: a.Position.String(), Category: string(a.Category), Detail: logging.OneLine(a.Detail),
					Attempts: a.Attempts},
			})
		}
		if f := s.Failure; f != nil {
			l.Failure = &listedFailure{
				Position: f.Position.String(), Category: string(f.Category), Detail: logging.OneLine(f.Detail), Attempts: f.Attempts,
			}
		}
		listed = append(listed, l)
	}
	return listed, nil
}

func behind(at, head domain.Position) uint64 {
	if at.Compare(head) >= 0 {
		return 0
	}
	return head.Commit - at.Commit
}

func lagText(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
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

func oneOf(name, otherwise string, known []string) error {
	if !slices.Contains(known, name) {
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
	if err := c.auditTrail.Validate(); err != nil {
		return err
	}
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
	supervisor := consumer.New(core.DB, feed, logging.Quiet(a.log), append(projections.All(), auditlog.Projector{})...)
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
	for _, f := range slices.Concat(aside, findings) { // a rebuild would set aside these streams again, or apply them
		if !a.json {
			if err := a.print(nil, "%s: %s", f.Stream, f.Problem); err != nil {
				return err
			}
		}
	}
	err = a.print(struct {
		Findings []audit.Finding `json:"findings"`
		SetAside []audit.Finding `json:"setAside,omitempty"` // streams that the rows go on without
	}{findings, aside}, "%s: %d rows are not what the log says", strings.Join(names, ", "), len(findings))
	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("a rebuild would change %d rows: humanqa fsck looks further", len(findings))
	}
	return err
}

type projectionsRetryCmd struct {
	auditTrail `embed:""`
	stoppable  `embed:""`
}

// Validate is called by kong.
func (c *projectionsRetryCmd) Validate() error {
	return errors.Join(c.auditTrail.Validate(), c.stoppable.Validate())
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
	Reason   string `required:"" help:"Why the event may be left out; kept on record."`
	By       string `default:"operator" help:"The operator's name, for the record."`
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
	return generation.Skip(ctx, core.DB, c.Name, failed[0], c.By, c.Reason)
}

// Validate is called by kong.
func (c *projectionsSkipCmd) Validate() error {
	if strings.TrimSpace(c.Reason) == "" {
		return errors.New("--reason must not be blank")
	}
	return c.stoppable.Validate()
}

type projectionsDropCmd struct {
	auditTrail `embed:""`
	Name       string `arg:"" help:"The name of a read model that no binary runs any more, as projections list shows it."`
}

// Validate is called by kong.
func (c *projectionsDropCmd) Validate() error {
	if slices.Contains(following(), c.Name) {
		return fmt.Errorf("this binary runs %s: projections rebuild builds it anew", c.Name)
	}
	return c.auditTrail.Validate()
}

func (c *projectionsDropCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	err := c.recordOnProjection(ctx, core, oversight.Drop, c.Name, func() error { return generation.Drop(ctx, core.DB, c.Name) })
	if err != nil {
		return err
	}
	return a.ordered(c.Name, "dropped", "its rows, views and checkpoint are gone")
}

func (a *app) ordered(name, status, next string) error {
	return a.print(map[string]any{"name": name, "status": status}, "%s: %s, %s", name, status, next)
}
