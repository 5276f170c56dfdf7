package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/tabular"
	"humanqa/projections/analytics"
	"humanqa/projections/auditlog"
)

// exportEvents is the table that is the log itself.
const exportEvents = "events"

type exportCmd struct {
	Table   string   `arg:"" enum:"events,jobs,items,ledger,tests,projects,accounts" help:"events, jobs, items, ledger, tests, projects or accounts."`
	Format  string   `enum:"ndjson,csv,parquet" default:"ndjson" help:"ndjson, csv or parquet."`
	Since   timeFlag `placeholder:"T" help:"Only from this ISO 8601 date or time on."`
	Until   timeFlag `placeholder:"T" help:"Only before this ISO 8601 date or time."`
	Account string   `placeholder:"ID" help:"Only this account's."`
	Out     string   `type:"path" placeholder:"FILE" help:"The file to write, which must not exist; standard output without it."`
}

// timeFlag is a time of a command line; nil: none was given.
type timeFlag struct{ at *time.Time }

// UnmarshalText is called by kong.
func (m *timeFlag) UnmarshalText(text []byte) error {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, string(text)); err == nil {
			m.at = &t
			return nil
		}
	}
	return fmt.Errorf("%q is no time, such as 2026-11-21T14:05:00Z or 2026-11-21", text)
}

// Run streams the rows: memory does not grow with them.
func (c *exportCmd) Run(ctx context.Context, a *app, core *service.Core) (err error) {
	out := a.out
	if c.Out != "" {
		file, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	rows, err := c.write(ctx, core, out)
	if err != nil {
		return fmt.Errorf("export %s: %w", c.Table, err)
	}
	if c.Out == "" {
		return nil
	}
	return a.print(map[string]any{"file": c.Out, "rows": rows}, "%s: %d rows", c.Out, rows)
}

func (c *exportCmd) write(ctx context.Context, core *service.Core, to io.Writer) (rows int64, err error) {
	buffered := bufio.NewWriterSize(to, 1<<16)
	view, columns := analytics.View{}, auditlog.EventColumns
	if c.Table != exportEvents {
		view, _ = analytics.Find(c.Table)
		columns = view.Table()
		if err := analytics.Prepare(ctx, core.DB); err != nil { // a service of this version may not have run yet
			return 0, fmt.Errorf("%w: start humanqa serve of this version once", err)
		}
	}
	err = tabular.Format(c.Format).Write(ctx, buffered, columns, func(ctx context.Context, write func([]any) error) error {
		each := func(row []any) error { rows++; return write(row) }
		if c.Table != exportEvents {
			f := analytics.Filter{AccountID: c.Account, Since: c.Since.at, Until: c.Until.at}
			return analytics.NewReads(core.DB).Each(ctx, view, f, each)
		}
		erased, err := core.Vault.Shredded(ctx)
		if err != nil {
			return err
		}
		return auditlog.Each(ctx, core.Log, c.event(erased, each))
	})
	return rows, errors.Join(err, buffered.Flush())
}

// event makes a row of an event. The event belongs to the account that its metadata
// names, or that its stream or the first event of its stream names. Of operators' and
// people's streams, only events with the account in their metadata are its own. A text
// that was sealed for an erased account says that it is gone.
func (c *exportCmd) event(erased map[string]bool, each func([]any) error) func(eventstore.RawEvent) error {
	span, owned := auditlog.Span{Since: c.Since.at, Until: c.Until.at}, map[string]bool{}
	return func(e eventstore.RawEvent) error {
		var meta domain.Metadata
		_ = json.Unmarshal(e.Meta, &meta) // unreadable metadata has no time and no account
		if c.Account != "" {
			var first struct{ AccountID string }
			_, id, _ := strings.Cut(e.Stream, "-")
			if e.Revision == 0 {
				_ = json.Unmarshal(e.Whole(), &first) // an event that names no account belongs to none
			}
			if (first.AccountID == c.Account || id == c.Account) && !strings.HasPrefix(e.Stream, domain.OperatorStreams) {
				owned[e.Stream] = true
			}
			if !owned[e.Stream] && meta.AccountID != c.Account {
				return nil
			}
		}
		if holds, _ := span.Holds(e.Position, meta.Time); !holds {
			return nil
		}
		words := domain.HiddenText
		if erased[meta.AccountID] {
			words = domain.ErasedText
		}
		return each(auditlog.EventRow(e, meta, words))
	}
}
