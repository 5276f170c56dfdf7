package main

import (
	"context"
	"fmt"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/fsck"
	"humanqa/projections"
)

// fsckCmd checks the invariants on live data. It compares the log with itself and with
// its signed checkpoints, and the rows of every read model with a new fold of the log.
type fsckCmd struct {
	Against []string `type:"existingfile" placeholder:"CHECKPOINT" help:"A checkpoint from a file that humanqa audit checkpoint wrote. May be repeated."`
}

func (f *fsckCmd) Run(ctx context.Context, a *app, c *service.Core) error {
	began := time.Now()
	out, err := c.Installation().Check(ctx, a.log, fsck.NoProgress, projections.Names(), f.Against...)
	if err != nil {
		return err
	}
	// Metrics and pages tell of the newest check, wherever it ran.
	if err := c.RecordCheck(ctx, time.Since(began), out); err != nil {
		a.log.WithError(err).Warn("the service does not know of this check")
	}
	return a.printChecked(out, out, "")
}

// printChecked prints the findings, and the counts behind the text before; findings are
// an error.
func (a *app) printChecked(out fsck.Result, object any, before string) error {
	var wrong error
	n := len(out.Findings)
	if n > 0 {
		wrong = fmt.Errorf("%d invariants do not hold: keep the data directory as it is and report the lines above", n)
	}
	counts := fmt.Sprintf("%s%d events, %d jobs, %d findings", before, out.Events, out.Jobs, n)
	return a.conclude(object, append(linesOf(out.Findings), counts), wrong)
}
