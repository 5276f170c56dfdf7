package main

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"

	"humanqa/domain/policy"
	"humanqa/eventstore"
	"humanqa/httpapi"
	"humanqa/internal/blob"
	"humanqa/projections"
	"humanqa/webhooks"
)

// drainFor is how long accepted requests may take to finish at a stop.
const drainFor = 15 * time.Second

type serveCmd struct {
	Demo  bool   `help:"Seed a demo account on the first start, and let webhooks reach this machine."`
	Roles string `help:"Parts to run, any of api,projector,webhooks,policy. Overrides HUMANQA_ROLES."`
}

// Help is shown by humanqa serve --help.
func (c *serveCmd) Help() string {
	return `The environment settles the rest:

HUMANQA_ADDR                        listen address (127.0.0.1:8080)
HUMANQA_BASE_URL                    starts every URL that is handed out (http://$HUMANQA_ADDR)
HUMANQA_ADMIN_ADDR                  metrics and profiles (127.0.0.1:0), or off
HUMANQA_DATA_DIR                    embedded Postgres, sockets, keys, evidence (.humanqa)
HUMANQA_DATABASE_URL                a Postgres to use instead of the embedded one
HUMANQA_EVENTSTORE_URL              an esdb:// log to use instead of the embedded node
HUMANQA_EVENTSTORE_LISTEN           TCP address for the embedded node, with TLS and a password
HUMANQA_EVENTSTORE_LISTEN_INSECURE  loopback TCP address for it, without either
HUMANQA_MASTER_KEY_FILE             keyset file (made in the data directory)
HUMANQA_EVIDENCE_URL                an s3:// bucket or file:// directory for evidence (in the data directory)
HUMANQA_AI                          who writes checklists and AI reports: rules, or openai (rules)
HUMANQA_AI_BASE_URL                 an OpenAI-compatible server (OpenAI's own)
HUMANQA_AI_MODEL                    the model to ask, with openai
HUMANQA_AI_KEY                      the key to it, with openai
HUMANQA_WEBHOOK_ALLOW               private networks that may be delivered to, as CIDRs
HUMANQA_WEBHOOK_CA_FILE             further CA certificates trusted for deliveries
HUMANQA_RATE_LIMIT                  requests per API key in any minute (60)
HUMANQA_HOSTED_DOMAINS              domains of hosted-app platforms, instead of those that are known
HUMANQA_ROLES                       parts to run (api,projector,webhooks,policy)
HUMANQA_LOG_FORMAT                  text or json (text on a terminal)
HUMANQA_LOG_LEVEL                   debug, info, warn, error (info)`
}

// Validate is called by kong.
func (c *serveCmd) Validate() error {
	if c.Roles == "" {
		return nil
	}
	_, err := parseRoles(c.Roles)
	return err
}

func (c *serveCmd) Run(ctx context.Context, a *app) error {
	cfg := a.cfg
	cfg.Demo = c.Demo
	if c.Roles != "" {
		roles, err := parseRoles(c.Roles)
		if err != nil {
			return err
		}
		cfg.Roles = roles
	}
	return serve(ctx, cfg, a.log, func(s *service) { s.welcome(a.out) })
}

// service is a running service.
type service struct {
	cfg         Config // BaseURL is set
	core        *core
	projections *projections.Supervisor
	demo        demoFile // with --demo
	api, admin  net.Listener
	evidence    *blob.Bucket // with the API
	started     atomic.Bool  // what the first start seeds is there
}

// serve runs the service until ctx ends, and calls ready once it answers. This
// is the whole wiring: everything starts in the order of what it stands on, and
// stops in reverse. A crash at any point leaves nothing that the next start
// does not heal.
func serve(ctx context.Context, cfg Config, log *logrus.Logger, ready func(*service)) (err error) {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	// Data directory, Postgres, schema, node, log, vault, commands.
	core, err := startCore(ctx, cfg, log, metrics)
	if err != nil && ctx.Err() != nil {
		log.WithError(err).Info("stopped while starting")
		return nil // as asked
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, core.close(ctx)) }()
	s := &service{core: core}
	if s.cfg, err = s.open(ctx, cfg); err != nil {
		return err
	}
	feed := eventstore.NewFeed(core.log, log)
	s.projections = projections.New(core.db, feed, log, projections.All()...)
	metrics.MustRegister(s.projections.Collector())
	if err := s.projections.Prepare(ctx); err != nil {
		return err
	}

	// The workers. One that breaks ends the service: half a service that looks
	// whole is worse than none.
	workers, running := newCrew(ctx)
	run := func(wanted bool, name string, work func(context.Context) error) {
		if wanted {
			core.stops.add(workers.start(name, work))
		}
	}
	roles := s.cfg.Roles
	run(core.postgres != nil, "postgres", core.watchPostgres)

	run(true, "feed", feed.Run)
	run(roles.Projector, "projections", s.projections.Run)

	run(roles.Policy, "policies", func(ctx context.Context) error {
		policy.Run(ctx, projections.NewTimers(core.db, core.dsn), log, policy.All(core.commands)...)
		return nil
	})

	hooks := s.webhookConfig(log)
	run(roles.Webhooks, "webhook subscriber", webhooks.NewSubscriber(core.db, feed, core.log, hooks).Run)
	run(roles.Webhooks, "webhook dispatcher", webhooks.NewDispatcher(core.db, core.vault, core.disableWebhook, hooks).Run)

	api := httpapi.New(s.apiDeps(log, metrics))
	run(roles.API, "api upkeep", api.Run)
	run(roles.API, "api", func(ctx context.Context) error {
		return httpapi.Serve(ctx, httpapi.NewServer(api, log), s.api, drainFor)
	})
	run(s.admin != nil, "admin", func(ctx context.Context) error {
		return serveAdmin(ctx, s.admin, adminHandler(metrics, api))
	})

	if err = s.becomeReady(running, log); err == nil {
		s.started.Store(true)
		ready(s)
		<-running.Done()
	}
	log.Info("stopping")
	switch {
	case ctx.Err() != nil:
		return nil // as asked
	case running.Err() != nil:
		return context.Cause(running)
	}
	return err
}
