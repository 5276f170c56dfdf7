package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/eventstore"
	"humanqa/eventstore/binding"
)

// ownLog names this installation's embedded node, where an address is asked for.
const ownLog = "embedded"

// copyTells is how often a copy says how far it is.
const copyTells = 10 * time.Second

type eventstoreCopyCmd struct {
	From   string `arg:"" help:"The log to copy, esdb://… or embedded, this installation's own. Nothing is written to it."`
	To     string `arg:"" help:"Where to: esdb://… or embedded. It has to be empty, or to hold the beginning of the same log."`
	Rebind bool   `help:"Then take this installation's database along, so that the service goes on with the copy. The service has to be stopped."`
}

// copied is the answer of copy.
type copied struct {
	eventstore.Copied
	Rebound bool `json:"rebound"`
}

func (c *eventstoreCopyCmd) Run(ctx context.Context, a *app) (err error) {
	if c.From == c.To {
		return errors.New("FROM and TO are the same log")
	}
	var home *service.Core
	if c.Rebind || c.From == ownLog || c.To == ownLog {
		if home, err = service.OpenHome(ctx, a.cfg, logging.Quiet(a.log)); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, home.Close(ctx)) }()
		if home.Served && (c.Rebind || c.To == ownLog) {
			return errors.New("the service runs: stop it first; copy without --rebind beforehand, then the rest takes a moment")
		}
	}
	open := func(what, url string) (*eventstore.Client, error) {
		if url == ownLog {
			return home.Log, nil
		}
		return a.openLog(what, url)
	}
	from, err := open("FROM", c.From)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := open("TO", c.To)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	out, err := c.copy(ctx, a, from, to)
	if err != nil {
		return err
	}
	if c.Rebind {
		if out.Grown {
			return fmt.Errorf("%d events are copied, but more were written meanwhile: stop every service that uses the log, and copy again",
				out.Events)
		}
		if err := binding.Rebind(ctx, home.DB, from, to); err != nil {
			return fmt.Errorf("the log is copied, but the database still belongs to the first one: %w", err)
		}
		out.Rebound = true
	}
	return a.print(out, "%s", out)
}

// copy copies the log and reports its progress every copyTells.
func (c *eventstoreCopyCmd) copy(ctx context.Context, a *app, from, to *eventstore.Client) (copied, error) {
	told := time.Now()
	done, err := eventstore.Copy(ctx, from, to, func(events int64) {
		if !a.json && time.Since(told) > copyTells {
			told = time.Now()
			_, _ = fmt.Fprintf(a.told, "%d events\n", events) // it is only progress
		}
	})
	if err != nil {
		return copied{}, fmt.Errorf("after %d events, %d of them by this run: %w", done.Events, done.Added, err)
	}
	return copied{Copied: done}, nil
}

func (c copied) String() string {
	line := fmt.Sprintf("%d events, %d of them copied now, SHA-256 %s in both", c.Events, c.Added, c.Hash)
	for _, event := range c.Unreadable {
		line += "\nan event that cannot be read was copied without its data: " + event
	}
	switch {
	case c.Rebound:
		line += "\nthe database belongs to the copy now: start the service with HUMANQA_EVENTSTORE_URL set to it (unset where it is embedded)"
	case c.Grown:
		line += "\nmore was written meanwhile: stop the service and copy again, with --rebind to take its database along"
	default:
		line += "\nto go on with the copy: stop the service and copy again with --rebind"
	}
	return line
}
