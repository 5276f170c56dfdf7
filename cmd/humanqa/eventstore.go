package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/node"
)

// openLog opens the log at an address; what names its setting or argument.
func (a *app) openLog(what, url string) (*eventstore.Client, error) {
	if err := service.CheckURL(what, url, "esdb", "esdb+discover", "kurrentdb", "kurrentdb+discover"); err != nil {
		return nil, err
	}
	return eventstore.Open(url, logging.Quiet(a.log))
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
		log, err = eventstore.OpenSocket(service.SocketPath(a.cfg.DataDir), eventstore.Patience, logging.Quiet(a.log))
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
		lines = append(lines, service.FindingLine(f))
		if !f.OK {
			missing++
		}
	}
	if missing > 0 {
		err = fmt.Errorf("%d of %d things that the service needs of its log are missing: the lines above name the next steps", missing,
			len(findings))
	}
	return a.conclude(map[string]any{"findings": findings}, lines, err)
}

type eventstoreGrantCmd struct {
	User string `arg:"" help:"The user of the log's server, as in the service's address."`
	URL  string `arg:"" optional:"" help:"The log, esdb://…, with a user in $admins; without it HUMANQA_EVENTSTORE_URL."`
}

// Run needs neither data directory nor Postgres.
func (c *eventstoreGrantCmd) Run(ctx context.Context, a *app) (err error) {
	url := cmp.Or(c.URL, a.cfg.EventStoreURL)
	if url == "" {
		return errors.New("the embedded node has no such users: name the log of a server of your own, or see humanqa eventstore reader")
	}
	log, err := a.openLog("URL", url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	granted, err := log.Grant(ctx, c.User)
	if err != nil {
		return fmt.Errorf("%w: the address needs a user in $admins", err)
	}
	if !granted {
		return a.print(map[string]any{"granted": false}, "%s may read $all already", c.User)
	}
	return a.print(map[string]any{"granted": true}, "%s may read $all, and subscribe to it", c.User)
}

type eventstoreReaderCmd struct {
	End bool `help:"End the password instead."`
}

// Run needs no database: the node looks the password up where it is put.
func (c *eventstoreReaderCmd) Run(a *app) error {
	dir := service.NodeCertificates(a.cfg)
	if c.End {
		was, err := node.DropReader(dir)
		if err != nil {
			return err
		}
		if !was {
			return domain.NotFound("the log's reader").WithHint("there is none; humanqa eventstore reader makes one")
		}
		return a.print(map[string]any{"reader": "ended"}, "the reader's password is ended")
	}
	if a.cfg.EventStoreListen == "" {
		return errors.New("only the embedded node's TLS address has a reader: set HUMANQA_EVENTSTORE_LISTEN, here as for the service")
	}
	url, err := node.MakeReader(dir, a.cfg.EventStoreListen)
	if err != nil {
		return fmt.Errorf("%w: start humanqa serve with HUMANQA_EVENTSTORE_LISTEN once", err)
	}
	return a.print(map[string]any{"url": url}, "%s   (shown once: it reads the whole log and appends nothing)", url)
}
