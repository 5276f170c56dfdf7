// Package service is the running service: its settings, and the order in which
// its parts start and stop.
//
//	serve.go      the wiring, on one screen
//	config.go     the settings, one struct
//	core.go       the base of the service and of the operator's commands
//	open.go       joins a running service, or starts a stopped one for a command
//	lifecycle.go  addresses, readiness, and the banner of a start
//	workers.go    the parts that run until a stop
//	shutdown.go   the order and the time limits of a stop
//
// This package may import all others; only cmd and tests import it. The packages
// below it are operations on a whole installation: backup, doctor, erase, fsck.
package service

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/sirupsen/logrus"

	"humanqa/domain/policy"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/mcp"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/blob"
	"humanqa/internal/invariantcheck"
	"humanqa/internal/mail"
	"humanqa/internal/scheduler"
	"humanqa/internal/tracing"
	"humanqa/internal/voice"
	"humanqa/projections"
	"humanqa/projections/analytics"
	"humanqa/projections/auditlog"
	"humanqa/projections/overall"
	"humanqa/projections/timers"
	"humanqa/webhooks"
	"humanqa/webhooks/notices"
	"humanqa/webhooks/send"
)

// Service is a running service.
type Service struct {
	cfg        Config // BaseURL is set
	core       *Core
	feed       *eventstore.Feed
	tracer     *tracing.Tracer // nil: no traces
	consumers  *consumer.Supervisor
	policies   *scheduler.Scheduler
	checks     *invariantcheck.Checks
	dispatcher *send.Dispatcher
	mail       *mail.Sender // nil where this process sends no e-mail
	demo       DemoFile     // with --demo
	guestLinks []welcomeLink
	api, admin net.Listener
	bucket     *blob.Bucket // where evidence lies, with the API
	evidence   *evidence.Service
	voice      *voice.Server // with the API, unless it is off
	started    atomic.Bool   // the data of the first start are there
}

// Serve runs the service until ctx ends, and calls ready once it answers. This
// is the whole wiring: each part starts after the parts that it needs, and the
// stop reverses the order. The next start heals a crash at any point.
func Serve(ctx context.Context, cfg Config, log *logrus.Logger, ready func(*Service)) (err error) {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		ThisBuild().metric())
	cfg.AI.Failed = countAIFailures(metrics)
	tracer, err := tracing.FromEnvironment(ctx, ThisBuild().Version, log)
	if err != nil {
		return err
	}

	// Data directory, Postgres, schema, node, log, vault, commands.
	core, err := startPatiently(ctx, cfg, log, metrics)
	defer func() { err = errors.Join(err, closeTracer(ctx, tracer)) }()
	if err != nil && ctx.Err() != nil {
		log.WithError(err).Info("stopped while starting")
		return nil // as asked
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, core.Close(ctx)) }()
	core.serves = true
	core.Log.TraceWith(tracer)
	s := &Service{core: core, tracer: tracer}
	if s.cfg, err = s.openAddresses(ctx, cfg, log); err != nil {
		return err
	}
	core.Hosts.SetPages(s.cfg.BaseURL)
	feed := eventstore.NewFeed(core.Log, log)
	feed.Verify(core.Binding.Check)
	s.feed = feed
	subscriber := webhooks.NewSubscriber(core.DB, core.Log, s.cfg.BaseURL)
	followers := append(projections.All(), auditlog.Projector{}, subscriber)
	if s.cfg.Mail != nil {
		followers = append(followers, notices.New(core.DB, core.Log))
	}
	s.consumers = consumer.New(core.DB, feed, log, followers...)
	s.consumers.TraceWith(tracer)
	metrics.MustRegister(s.consumers.Collector(), feed.Collector(), sizeMetrics{core.Commands},
		resourceMetrics{cfg.DataDir, core.Clock})
	prometheus.WrapRegistererWithPrefix("humanqa_", metrics).MustRegister(
		collectors.NewDBStatsCollector(core.DB.DB, "all"), collectors.NewDBStatsCollector(core.Lent.DB, "lent"))
	if err := s.consumers.Prepare(ctx); err != nil {
		return err
	}
	if err := analytics.Prepare(ctx, core.DB); err != nil {
		return err
	}
	if core.postgres != nil { // in the operator's own, so are the roles
		if err := boundAnalysts(ctx, core.DB); err != nil {
			return err
		}
	}
	head, err := headPatiently(ctx, core.Log, log)
	if err != nil {
		return err
	}

	// A worker that breaks ends the service: half a service that looks whole is
	// worse than none.
	workers, running := newWorkerGroup(ctx)
	run := func(wanted bool, name string, work func(context.Context) error) {
		if wanted {
			core.shutdown.add(name, workerBudget, workers.start(name, work))
		}
	}
	roles := s.cfg.Roles
	run(core.postgres != nil, "postgres", core.watchPostgres)

	run(true, "watchdog", func(ctx context.Context) error { return feedWatchdog(ctx, log) })
	run(core.node != nil, "log's lock", core.watchLock)
	run(true, "keyset", sweeping(core.Vault.FollowKeyset, log, "the keyset is not the newest"))
	run(true, "log's name", func(ctx context.Context) error { return core.Binding.Watch(ctx, log) })
	run(true, "feed", feed.Run)
	run(true, "log's follower", func(ctx context.Context) error { return s.consumers.Follow(ctx, core.dsn, head) })
	hooks := s.webhookConfig(log)
	s.dispatcher = send.NewDispatcher(core.DB, core.Vault, send.Report{Disabled: core.disableWebhook, Confirmed: core.confirmSecret}, hooks)
	subscriber.SendThrough(s.dispatcher.Direct())
	var following []string
	if roles.Projector {
		following = append(projections.Names(), auditlog.Name)
	}
	if roles.Webhooks {
		following = append(following, webhooks.SubscriberName)
		if s.cfg.Mail != nil {
			following = append(following, notices.Name)
		}
	}
	run(len(following) > 0, "consumers' session", func(ctx context.Context) error { return s.consumers.Present(ctx, core.dsn) })
	run(len(following) > 0, "consumers", func(work context.Context) error {
		// A service that broke gives its leases back at once, not after its last requests:
		// the consumers of another process wait for them.
		work, leave := context.WithCancel(work)
		defer leave()
		defer context.AfterFunc(running, func() {
			if ctx.Err() == nil {
				leave()
			}
		})()
		return s.consumers.Only(following...)(work)
	})
	s.checks = core.newChecks(log)
	metrics.MustRegister(s.checks)
	core.shutdown.add("checks", workerBudget, func(context.Context) error { s.checks.Stop(); return nil })
	if roles.Projector {
		run(s.cfg.CheckHours > 0, "daily check", func(ctx context.Context) error {
			return s.checks.Repeat(ctx, time.Duration(s.cfg.CheckHours)*time.Hour, invariantcheck.LookEvery)
		})
		keeper := auditlog.NewKeeper(core.Signer(), log)
		metrics.MustRegister(keeper)
		run(true, "audit", keeper.Run)
		business := overall.NewBusiness(core.DB, feed, core.Clock.Now, log)
		metrics.MustRegister(business)
		run(true, "business metrics", func(ctx context.Context) error { return business.Run(ctx, head) })
	}

	core.Commands.Statuses = readableStatuses{core.Hosts, core.Binding.Guard().Head, s.consumers.AwaitReads}
	s.policies = scheduler.New(timers.New(core.DB, core.dsn), log, policy.All(core.Commands)...)
	metrics.MustRegister(s.policies.Collectors()...)
	// One of them is the token of a submission that crashed before its job.
	run(roles.Policy, "held secrets", sweeping(core.Vault.ForgetExpired, log, "expired secrets stay until the next look"))
	run(roles.Policy, "policies", func(ctx context.Context) error { s.policies.Run(ctx); return nil })

	metrics.MustRegister(s.dispatcher.Collectors()...)
	run(roles.Webhooks, "webhook dispatcher", s.dispatcher.Run)
	if s.cfg.Mail != nil && roles.Webhooks {
		s.mail = mail.NewSender(s.mailConfig(log))
		metrics.MustRegister(s.mail.Collectors()...)
		run(true, "mail sender", s.mail.Run)
	}

	spool := wire.NewSpool(s.cfg.DataDir)
	s.evidence = evidence.New(s.evidenceDeps(log, metrics, spool))
	run(roles.API, "evidence", s.evidence.Run)
	api := httpapi.New(s.apiDeps(log, metrics, spool))
	run(roles.API, "api upkeep", api.Run)
	if roles.API {
		pages, err := s.openSite(ctx, api, feed, head, log)
		if err != nil {
			return err
		}
		run(true, "pages", pages.run)
		run(true, "sign-ins", sweeping(pages.credentials.Sweep, log, "ended sessions and links stay until the next sweep"))
		core.shutdown.add("api", apiBudget, workers.start("api", func(ctx context.Context) error {
			front := ui.Front{
				Site: pages.Site, API: mcp.New(api, s.cfg.BaseURL, ThisBuild().Version),
				Halted: core.Binding.Refuse, Settle: s.reach().Settle,
			}
			server := httpapi.NewServer(front, log)
			server.Handler = api.Parting(server.Handler)
			return httpapi.Serve(ctx, server, httpapi.CapConns(s.api, s.cfg.connections(), log), drainTime)
		}))
	}
	run(s.admin != nil, "admin", func(ctx context.Context) error {
		return serveAdmin(ctx, httpapi.CapConns(s.admin, adminConnections, log), adminHandler(s.cfg.AdminAddr, metrics, api))
	})

	if err = s.becomeReady(running, log); err == nil {
		s.started.Store(true)
		tellSystemd(daemon.SdNotifyReady, log)
		ready(s)
		<-running.Done()
	}
	log.Info("stopping")
	tellSystemd(daemon.SdNotifyStopping, log)
	if s.started.Load() && ctx.Err() != nil { // a service that broke has nothing to say
		s.leave(api)
	}
	switch {
	case ctx.Err() != nil:
		return nil // as asked
	case running.Err() != nil:
		return context.Cause(running)
	}
	return err
}
