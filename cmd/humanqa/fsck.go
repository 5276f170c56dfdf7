package main

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain/audit"
	"humanqa/eventstore"
	"humanqa/projections"
)

// fsckPage is how many events are read at a time.
const fsckPage = 2000

// fsckCmd checks the invariants on live data: the log against itself, and the
// rows of every read model against a fold of the log made anew.
type fsckCmd struct{}

// checked is what fsck answers.
type checked struct {
	Events   int             `json:"events"`
	Jobs     int             `json:"jobs"`
	Findings []audit.Finding `json:"findings"`
}

func (fsckCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, c *core) error {
		out, err := fsck(ctx, c, a)
		if err != nil {
			return err
		}
		for _, f := range out.Findings {
			if !a.json {
				if err := a.print(nil, "%s", f); err != nil {
					return err
				}
			}
		}
		if err := a.print(out, "%d events, %d jobs, %d findings", out.Events, out.Jobs, len(out.Findings)); err != nil {
			return err
		}
		if n := len(out.Findings); n > 0 {
			return fmt.Errorf("%d invariants do not hold: keep the data directory as it is and report the lines above", n)
		}
		return nil
	})
}

func fsck(ctx context.Context, c *core, a *app) (checked, error) {
	log := audit.New()
	at := eventstore.Checkpoint{Start: true}
	for end := false; !end; {
		page, next, last, err := c.log.ReadAll(ctx, at.Position, at.Start, fsckPage)
		if err != nil {
			return checked{}, fmt.Errorf("read the log behind %s: %w", at.Position, err)
		}
		for _, r := range page {
			log.See(r)
		}
		at, end = eventstore.At(next), last
	}
	out := checked{Events: log.Events, Jobs: log.Jobs, Findings: log.Findings(time.Now())}

	feed := eventstore.NewFeed(c.log, a.log) // not run: it then reads pages
	supervisor := projections.New(c.db, feed, a.log, projections.All()...)
	for _, p := range projections.All() {
		differences, err := supervisor.Verify(ctx, p.Name())
		if err != nil {
			return checked{}, err
		}
		for _, d := range differences {
			has, lacks := "the read model", "the fold of the log"
			if d.InFold {
				has, lacks = lacks, has
			}
			out.Findings = append(out.Findings, audit.Finding{
				Invariant: 9, Stream: p.Name(),
				Problem: fmt.Sprintf("%s has a row of %s that %s lacks: %s", has, d.Table, lacks, d.Row),
			})
		}
	}
	if out.Findings == nil {
		out.Findings = []audit.Finding{}
	}
	return out, nil
}
