package main

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"

	"humanqa/domain/policy"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi"
	"humanqa/httpapi/ui"
	"humanqa/internal/blob"
	"humanqa/internal/heapfloor"
	"humanqa/internal/scheduler"
	"humanqa/internal/voice"
	"humanqa/projections"
	"humanqa/projections/analytics"
	"humanqa/projections/auditlog"
	"humanqa/projections/overall"
	"humanqa/projections/timers"
	"humanqa/webhooks"
)

// heapFloor is how large the heap grows before it is collected: what a busy service needs
// anyway (docs/operations.md, "Memory").
const heapFloor = 112 << 20

type serveCmd struct {
	Demo  bool   `help:"Seed a demo account on the first start, and let webhooks reach this machine."`
	Roles string `help:"Parts to run, any of api,projector,webhooks,policy. Overrides HUMANQA_ROLES."`
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
	if err := becomeOwner(cfg, a.log); err != nil {
		return err
	}
	heapfloor.Keep(heapFloor)
	return serve(ctx, cfg, a.log, func(s *service) { s.welcome(a.out) })
}

// service is a running service.
type service struct {
	cfg        Config // BaseURL is set
	core       *core
	consumers  *consumer.Supervisor
	policies   *scheduler.Scheduler
	dispatcher *webhooks.Dispatcher
	demo       demoFile // with --demo
	links      []welcomeLink
	api, admin net.Listener
	evidence   *blob.Bucket  // with the API
	voice      *voice.Server // with the API, unless it is off
	started    atomic.Bool   // what the first start seeds is there
}

// serve runs the service until ctx ends, and calls ready once it answers. This
// is the whole wiring: everything starts in the order of what it stands on, and
// stops in reverse. A crash at any point leaves nothing that the next start
// does not heal.
func serve(ctx context.Context, cfg Config, log *logrus.Logger, ready func(*service)) (err error) {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), thisBuild().metric())
	cfg.AI.Failed = countAIFailures(metrics)

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
	core.serves = true
	s := &service{core: core}
	if s.cfg, err = s.open(ctx, cfg, log); err != nil {
		return err
	}
	feed := eventstore.NewFeed(core.log, log)
	feed.Verify(core.binding.Check)
	core.commands.Follow(feed)
	subscriber := webhooks.NewSubscriber(core.db, core.log, s.cfg.BaseURL)
	s.consumers = consumer.New(core.db, feed, log, append(projections.All(), auditlog.Projector{}, subscriber)...)
	metrics.MustRegister(s.consumers.Collector(), growth{core.commands})
	if err := s.consumers.Prepare(ctx); err != nil {
		return err
	}
	if err := analytics.Prepare(ctx, core.db); err != nil {
		return err
	}
	if core.postgres != nil { // in one of yours, roles are yours
		if err := boundAnalysts(ctx, core.db); err != nil {
			return err
		}
	}
	head, err := core.log.Head(ctx)
	if err != nil {
		return err
	}

	// The workers. One that breaks ends the service: half a service that looks
	// whole is worse than none.
	workers, running := newCrew(ctx)
	run := func(wanted bool, name string, work func(context.Context) error) {
		if wanted {
			core.stops.add(name, workerStop, workers.start(name, work))
		}
	}
	roles := s.cfg.Roles
	run(core.postgres != nil, "postgres", core.watchPostgres)

	run(true, "log's name", func(ctx context.Context) error { return core.binding.Watch(ctx, log) })
	run(true, "feed", feed.Run)
	run(roles.API, "log's follower", func(ctx context.Context) error { return s.consumers.Follow(ctx, core.dsn, head) })
	hooks := s.webhookConfig(log)
	s.dispatcher = webhooks.NewDispatcher(core.db, core.vault, webhooks.Report{Disabled: core.disableWebhook, Confirmed: core.confirmSecret}, hooks)
	subscriber.HandTo(s.dispatcher)
	var following []string
	if roles.Projector {
		following = append(projections.Names(), auditlog.Name)
	}
	if roles.Webhooks {
		following = append(following, webhooks.SubscriberName)
	}
	run(len(following) > 0, "consumers", s.consumers.Only(following...))
	if roles.Projector {
		keeper := auditlog.NewKeeper(core.signer(), core.checkAll, log)
		metrics.MustRegister(keeper)
		run(true, "audit", keeper.Run)
		business := overall.NewBusiness(core.db, feed, core.clock.Now, log)
		metrics.MustRegister(business)
		run(true, "business metrics", func(ctx context.Context) error { return business.Run(ctx, head) })
	}

	s.policies = scheduler.New(timers.New(core.db, core.dsn), log, policy.All(core.commands)...)
	metrics.MustRegister(s.policies.Collectors()...)
	run(roles.Policy, "policies", func(ctx context.Context) error { s.policies.Run(ctx); return nil })

	metrics.MustRegister(s.dispatcher.Collectors()...)
	run(roles.Webhooks, "webhook dispatcher", s.dispatcher.Run)

	api := httpapi.New(s.apiDeps(log, metrics))
	run(roles.API, "api upkeep", api.Run)
	if roles.API {
		pages, err := s.openSite(ctx, api, feed, log)
		if err != nil {
			return err
		}
		run(true, "pages", pages.run(log))
		core.stops.add("api", apiStop, workers.start("api", func(ctx context.Context) error {
			return httpapi.Serve(ctx, httpapi.NewServer(ui.Front{Site: pages.Site, API: api, Halted: core.binding.Refuse, Settle: s.reach().Settle}, log), httpapi.CapConns(s.api, s.cfg.connections(), log), drainFor)
		}))
	}
	run(s.admin != nil, "admin", func(ctx context.Context) error {
		return serveAdmin(ctx, httpapi.CapConns(s.admin, adminConnections, log), adminHandler(s.cfg.AdminAddr, metrics, api))
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
