package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain/oversight"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/projections/declared"
)

// declaredFile is the argument of the commands about a declared projection.
type declaredFile struct {
	File string `arg:"" type:"existingfile" help:"A declared projection, as docs/analytics.md describes it."`
}

func (d declaredFile) read() (declared.File, error) {
	text, err := os.ReadFile(d.File)
	if err != nil {
		return declared.File{}, err
	}
	f, err := declared.Parse(text)
	if err != nil {
		return f, fmt.Errorf("%s: %w", d.File, err)
	}
	return f, nil
}

// check tries the file on the log's last events.
func (d declaredFile) check(ctx context.Context, a *app, core *service.Core) (f declared.File, did declared.Checked, err error) {
	if f, err = d.read(); err != nil {
		return f, did, err
	}
	did, err = declared.CheckLast(ctx, core.DB, core.Log.Last, eventstore.NewFeed(core.Log, logging.Quiet(a.log)), f)
	if err != nil {
		err = fmt.Errorf("%s: %w", d.File, err)
	}
	return f, did, err
}

type projectionsCheckCmd struct{ declaredFile }

func (c *projectionsCheckCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	f, did, err := c.check(ctx, a, core)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s, version %d: %d of the last %d events, in %s", f.Name, f.Version, did.Events, declared.LastEvents,
		did.Took.Round(time.Millisecond))
	for _, t := range did.Tables {
		fmt.Fprintf(&text, "\n  %-30s %8d rows", t.Table, t.Rows)
	}
	return a.print(map[string]any{"name": f.Name, "version": f.Version, "events": did.Events, "tables": did.Tables}, "%s", text.String())
}

type projectionsAddCmd struct {
	declaredFile
	auditTrail `embed:""`

	DryRun bool `help:"Only check it, as projections check does."`
}

func (c *projectionsAddCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	if c.DryRun {
		check := projectionsCheckCmd{c.declaredFile}
		return check.Run(ctx, a, core)
	}
	f, _, err := c.check(ctx, a, core)
	if err != nil {
		return err
	}
	added := false
	err = c.recordOnProjection(ctx, core, oversight.Declare, f.Name, func() (err error) {
		added, err = declared.Add(ctx, core.DB, f)
		return err
	})
	switch {
	case err != nil:
		return err
	case !added:
		return a.ordered(f.Name, "unchanged", "the same file is there already")
	}
	return a.ordered(f.Name, "added", "the service builds it now, or when it starts: follow it with humanqa projections list")
}

type projectionsTestCmd struct{ declaredFile }

func (c *projectionsTestCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	f, err := c.read()
	if err != nil {
		return err
	}
	head, err := core.Log.Head(ctx)
	if err != nil {
		return err
	}
	events, found, err := declared.Test(ctx, core.DB, eventstore.NewFeed(core.Log, logging.Quiet(a.log)), f, head)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s, version %d: %d events, in large batches and in small ones: %d rows differ", f.Name, f.Version, events, len(found))
	for _, d := range found {
		in := "large"
		if d.InFold {
			in = "small"
		}
		fmt.Fprintf(&text, "\n  %s, only in %s batches: %s", d.Table, in, d.Row)
	}
	err = a.print(map[string]any{"name": f.Name, "version": f.Version, "events": events, "differences": found}, "%s", text.String())
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("the rows of %s depend on the cut of its batches", f.Name)
	}
	return err
}

// dropDeclared removes a declared projection of that name; known is false where there is none.
func (c *projectionsDropCmd) dropDeclared(ctx context.Context, core *service.Core) (known bool, err error) {
	files, err := declared.List(ctx, core.DB)
	for _, f := range files {
		if c.Name == f.Name || c.Name == generation.Declared(f.Name) {
			return true, declared.Drop(ctx, core.DB, f.Name)
		}
	}
	return false, err
}
