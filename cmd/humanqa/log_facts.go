package main

import (
	"context"
	"fmt"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/origin"
)

// logReason is why an operator states a fact of the log itself.
type logReason struct {
	Reason filled `required:"" help:"The reason; it stands in the log."`
}

// toldLog names the log and its generation after the statement.
type toldLog struct {
	Log        string `json:"log"`
	Generation int    `json:"generation"`
}

func toldOf(l origin.Lineage) toldLog { return toldLog{l.Name, l.Generation()} }

type eventstoreRestoredCmd struct {
	logReason `embed:""`
}

// Run begins a new generation of the log where the service cannot see the restore itself:
// copied files, a snapshot of a machine, a log on another server.
func (c *eventstoreRestoredCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	now, err := core.Binding.NoteRestored(ctx, string(c.Reason))
	if err != nil {
		return err
	}
	return a.print(toldOf(now), "log %s is in generation %d now: cursors that point at lost events are refused", now.Name, now.Generation())
}

type eventstoreTrimmedCmd struct {
	logReason `embed:""`
	UpTo      string `required:"" placeholder:"POSITION" help:"The last event that may be missing, commit/prepare as projections list shows it."`
}

func (c *eventstoreTrimmedCmd) position() (at domain.Position, err error) {
	if n, err := fmt.Sscanf(c.UpTo, "%d/%d", &at.Commit, &at.Prepare); n < 2 || err != nil || at.String() != c.UpTo {
		return at, fmt.Errorf("--up-to %q is no position such as 1200/1200", c.UpTo)
	}
	return at, nil
}

// Validate is called by kong.
func (c *eventstoreTrimmedCmd) Validate() error {
	_, err := c.position()
	return err
}

// Run notes that events up to a place are missing, so that readers from before it are
// told.
func (c *eventstoreTrimmedCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	at, err := c.position()
	if err != nil {
		return err
	}
	now, err := core.Binding.NoteTrimmed(ctx, at, string(c.Reason))
	if err != nil {
		return err
	}
	return a.print(struct {
		toldLog
		Gone string `json:"gone"`
	}{toldOf(now), now.Gone.String()}, "cursors before %s are refused as gone", now.Gone)
}
