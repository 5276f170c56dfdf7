package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sirupsen/logrus"
	"humanqa/domain"

	"humanqa/eventstore"
	"humanqa/eventstore/node"
)

// openLog opens the log at an address that was given as what.
func (a *app) openLog(what, url string) (*eventstore.Client, error) {
	if err := checkURL(what, url, "esdb", "esdb+discover", "kurrentdb", "kurrentdb+discover"); err != nil {
		return nil, err
	}
	return eventstore.Open(url, quiet(a.log))
}

type eventstoreCheckCmd struct {
	URL string `arg:"" optional:"" help:"The log to look at, esdb://…; without it HUMANQA_EVENTSTORE_URL, or the running service's."`
}

// Run needs neither data directory nor Postgres where the log has an address.
func (c *eventstoreCheckCmd) Run(ctx context.Context, a *app) (err error) {
	url := c.URL
	if url == "" {
		url = a.cfg.EventStoreURL
	}
	var log *eventstore.Client
	if url == "" {
		log, err = eventstore.OpenSocket(socketPath(a.cfg.DataDir), quiet(a.log))
	} else {
		log, err = a.openLog("URL", url)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	findings := log.Inspect(ctx)
	var lines []string
	missing := 0
	for _, f := range findings {
		lines = append(lines, findingLine(f))
		if !f.OK {
			missing++
		}
	}
	if err := a.print(struct {
		Findings []eventstore.Finding `json:"findings"`
	}{findings}, "%s", strings.Join(lines, "\n")); err != nil {
		return err
	}
	if missing > 0 {
		return fmt.Errorf("%d of %d things that the service needs of its log are missing: the lines above say what to do", missing, len(findings))
	}
	return nil
}

type eventstoreReaderCmd struct {
	End bool `help:"End the password instead."`
}

// Run needs no database: the node looks the password up where it is put.
func (c *eventstoreReaderCmd) Run(a *app) error {
	dir := nodeCertificates(a.cfg)
	if c.End {
		was, err := node.DropReader(dir)
		if err != nil {
			return err
		}
		if !was {
			return domain.NotFound("the log's reader").WithHint("there is none; humanqa eventstore reader makes one")
		}
		return a.print(struct {
			Reader string `json:"reader"`
		}{"ended"}, "the reader's password is ended")
	}
	if a.cfg.EventStoreListen == "" {
		return errors.New("only the embedded node's TLS address has a reader: set HUMANQA_EVENTSTORE_LISTEN, here as for the service")
	}
	url, err := node.MakeReader(dir, a.cfg.EventStoreListen)
	if err != nil {
		return fmt.Errorf("%w: start humanqa serve with HUMANQA_EVENTSTORE_LISTEN once", err)
	}
	return a.print(struct {
		URL string `json:"url"`
	}{url}, "%s   (shown once: it reads the whole log and appends nothing)", url)
}

func findingLine(f eventstore.Finding) string {
	if f.OK {
		return fmt.Sprintf("ok    %-17s  %s", f.What, oneLine(f.Detail))
	}
	return fmt.Sprintf("FAIL  %-17s  %s: %s", f.What, oneLine(f.Detail), f.Hint)
}

// tellMissing says at the start what an operator's log lacks, line by line as
// eventstore check does.
func (c *core) tellMissing(ctx context.Context, log logrus.FieldLogger) {
	findings := c.log.Inspect(ctx)
	if !slices.ContainsFunc(findings, func(f eventstore.Finding) bool { return !f.OK }) {
		return
	}
	for _, f := range findings {
		if line := findingLine(f); f.OK {
			log.Info(line)
		} else {
			log.Error(line)
		}
	}
}
