package main

import (
	"context"
	"fmt"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/backup"
	"humanqa/cmd/humanqa/service/fsck"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/internal/archive"
)

type restoreCmd struct {
	File string `arg:"" type:"path" help:"A file that humanqa backup wrote."`
}

// restored is the answer of restore.
type restored struct {
	fsck.Result

	DataDir string    `json:"dataDir"`
	Made    time.Time `json:"made"` // when the backup was
}

// Run reads the whole backup before it writes anything, and checks every invariant on the
// restored installation.
func (c *restoreCmd) Run(ctx context.Context, a *app) error {
	if err := backup.EmbeddedOnly(a.cfg); err != nil {
		return err
	}
	from, err := archive.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it is only read
	if err := backup.Fits(from.Manifest, a.cfg); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if err := service.BecomeOwner(a.cfg, a.log); err != nil {
		return err
	}
	if err := backup.Restore(ctx, a.cfg, from, logging.Quiet(a.log)); err != nil {
		return fmt.Errorf("restore %s: %w", c.File, err)
	}
	err = a.withCore(ctx, func(ctx context.Context, core *service.Core) error {
		models, err := backup.CurrentModels(ctx, core.DB)
		if err != nil {
			return err
		}
		out, err := core.Installation().Check(ctx, a.log, fsck.NoProgress, models)
		if err != nil {
			return err
		}
		return a.printChecked(out, restored{Result: out, DataDir: a.cfg.DataDir, Made: from.Made},
			fmt.Sprintf("%s is as it was at %s: ", a.cfg.DataDir, from.Made.Format(time.RFC3339)))
	})
	if err != nil {
		return fmt.Errorf("%s is restored, but: %w", a.cfg.DataDir, err)
	}
	return nil
}
