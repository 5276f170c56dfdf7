package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/node"
	"humanqa/httpapi"
	"humanqa/internal/blob"
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
		return a.printChecked(out, out, "")
	})
}

// printChecked tells the findings and counts, after what led to them; findings
// are an error.
func (a *app) printChecked(out checked, object any, before string) error {
	for _, f := range out.Findings {
		if !a.json {
			if err := a.print(nil, "%s", f); err != nil {
				return err
			}
		}
	}
	if err := a.print(object, "%s%d events, %d jobs, %d findings", before, out.Events, out.Jobs, len(out.Findings)); err != nil {
		return err
	}
	if n := len(out.Findings); n > 0 {
		return fmt.Errorf("%d invariants do not hold: keep the data directory as it is and report the lines above", n)
	}
	return nil
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
	now, err := c.auditedAt(ctx)
	if err != nil {
		return checked{}, err
	}
	out := checked{Events: log.Events, Jobs: log.Jobs, Findings: log.Findings(now)}
	if err := c.auditEvidence(ctx, &out); err != nil {
		return checked{}, err
	}

	feed := eventstore.NewFeed(c.log, a.log) // not run: it then reads pages
	supervisor := consumer.New(c.db, feed, a.log, projections.All()...)
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

// auditedAt is the moment to judge deadlines by. A service that is stopped
// settles nothing: what it owed when it stopped, or when its backup was taken,
// it still has its time for.
func (c *core) auditedAt(ctx context.Context) (time.Time, error) {
	now := time.Now()
	if c.served || c.node == nil {
		return now, nil
	}
	_, last, err := node.Head(ctx, c.db)
	if err != nil || last.After(now) {
		return now, err
	}
	return last, nil
}

// auditEvidence looks for the file of every piece of evidence, where they are in
// a directory.
func (c *core) auditEvidence(ctx context.Context, out *checked) error {
	dir, ok := blob.Path(c.cfg.EvidenceURL)
	if !ok {
		return nil
	}
	return httpapi.StoredEvidence(ctx, c.db, func(jobID, key string, size int64) error {
		if lost(filepath.Join(dir, filepath.FromSlash(key)), size) {
			out.Findings = append(out.Findings, audit.Finding{
				Invariant: 20, Stream: domain.JobStream(jobID), Problem: "the file of evidence " + key + " is lost",
			})
		}
		return nil
	})
}
