// Package service is the running service: its settings, and the order in which
// its parts start and stop.
//
//	serve.go      the wiring: the parts, in the order of their start
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

	"humanqa/domain"
	"humanqa/domain/policy"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/mcp"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/blob"
	"humanqa/internal/buildinfo"
	"humanqa/internal/invariantcheck"
	"humanqa/internal/mail"
	"humanqa/internal/scheduler"
	"humanqa/internal/tracing"
	"humanqa/internal/voice"
	"humanqa/projections"
	"humanqa/projections/analytics"
	"humanqa/projections/auditlog"
	"humanqa/projections/declared"
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
	mail       *mail.Sender // nil where this process sends no letters
	demo       DemoFile     // with --demo
	guestLinks []welcomeLink
	api, admin net.Listener
	bucket     blob.Bucket // where evidence lies, with the API
	evidence   *evidence.Service
	voice      *voice.Server // with the API, unless it is off
	started    atomic.Bool   // the data of the first start are there
}

// Serve runs the service until ctx ends, and calls ready once it answers. Each part
// starts after the parts that it needs, and the stop reverses the order. The next start
// heals a crash at any point.
func Serve(ctx context.Context, cfg Config, log *logrus.Logger, ready func(*Service)) (err error) {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildMetric())
	cfg.AI.Failed = countAIFailures(metrics)
	tracer, err := tracing.FromEnvironment(ctx, buildinfo.This().Version, log)
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
	b := &boot{Service: s, ctx: ctx, log: log, metrics: metrics}
	if err := b.prepare(); err != nil {
		return err
	}
	b.workers, b.running = newWorkerGroup(ctx)
	for _, start := range []func(){b.startLog, b.startConsumers, b.startChecks, b.startPolicies, b.startWebhooks} {
		start()
	}
	if err := b.startAPI(); err != nil {
		return err
	}

	if err = s.becomeReady(b.running, log); err == nil {
		s.started.Store(true)
		tellSystemd(daemon.SdNotifyReady, log)
		ready(s)
		<-b.running.Done()
	}
	log.Info("stopping")
	tellSystemd(daemon.SdNotifyStopping, log)
	if s.started.Load() && ctx.Err() != nil { // a service that broke has nothing to say
		s.leave(b.handlers)
	}
	switch {
	case ctx.Err() != nil:
		return nil // as asked
	case b.running.Err() != nil:
		return context.Cause(b.running)
	}
	return err
}

// boot starts the parts of a service, one after the other.
type boot struct {
	*Service
	ctx        context.Context // of Serve
	log        *logrus.Logger
	metrics    *prometheus.Registry
	head       domain.Position // of the log, before the first worker
	subscriber *webhooks.Subscriber
	workers    *workerGroup
	running    context.Context // ends with ctx, or with the first worker that fails
	handlers   *httpapi.API
}

// prepare makes the feed and its consumers, which do not run yet.
func (b *boot) prepare() error {
	core := b.core
	core.Hosts.SetPages(b.cfg.BaseURL)
	b.feed = eventstore.NewFeed(core.Log, b.log)
	b.feed.Verify(core.Binding.Check)
	b.subscriber = webhooks.NewSubscriber(core.DB, core.Log, b.cfg.BaseURL)
	followers := append(projections.All(), auditlog.Projector{}, b.subscriber, notices.New(core.DB, core.Log, b.cfg.Mail != nil))
	b.consumers = consumer.New(core.DB, b.feed, b.log, followers...)
	b.consumers.TraceWith(b.tracer)
	b.metrics.MustRegister(b.consumers.Collector(), b.feed.Collector(), sizeMetrics(core.Commands),
		resourceMetrics(b.cfg.DataDir, core.Clock))
	prometheus.WrapRegistererWithPrefix("humanqa_", b.metrics).MustRegister(
		collectors.NewDBStatsCollector(core.DB.DB, "all"), collectors.NewDBStatsCollector(core.Lent.DB, "lent"))
	if err := b.consumers.Prepare(b.ctx); err != nil {
		return err
	}
	if err := analytics.Prepare(b.ctx, core.DB); err != nil {
		return err
	}
	if core.postgres != nil { // in the operator's own, so are the roles
		if err := boundAnalysts(b.ctx, core.DB); err != nil {
			return err
		}
	}
	var err error
	b.head, err = headPatiently(b.ctx, core.Log, b.log)
	return err
}

// run starts a worker. A worker that breaks ends the service: half a service that looks
// whole is worse than none.
func (b *boot) run(wanted bool, name string, work func(context.Context) error) {
	if wanted {
		b.core.shutdown.add(name, workerBudget, b.workers.start(name, work))
	}
}

func (b *boot) startLog() {
	core := b.core
	b.run(core.postgres != nil, "postgres", core.watchPostgres)
	b.run(true, "watchdog", func(ctx context.Context) error { return feedWatchdog(ctx, b.log) })
	b.run(core.node != nil, "log's lock", core.watchLock)
	b.run(true, "analysts", repeating(analystsEvery, func(ctx context.Context) error {
		return EndAnalysts(ctx, core.DB, analystLimit)
	}, b.log, "long queries of analysts go on until the next look"))
	b.run(true, "keyset", repeating(sweepEvery, core.Vault.FollowKeyset, b.log, "the keyset is not the newest"))
	b.run(true, "log's name", func(ctx context.Context) error { return core.Binding.Watch(ctx, b.log) })
	b.run(true, "feed", b.feed.Run)
	b.run(true, "log's follower", func(ctx context.Context) error { return b.consumers.Follow(ctx, core.dsn, b.head) })
}

func (b *boot) startConsumers() {
	core, roles := b.core, b.cfg.Roles
	b.dispatcher = send.NewDispatcher(core.DB, core.Vault, send.Report{Disabled: core.disableWebhook, Confirmed: core.confirmSecret},
		send.Config{
			DSN:     core.dsn,
			Allow:   b.cfg.WebhookAllow,
			CAFile:  b.cfg.WebhookCAFile,
			Log:     b.log.WithField("part", "webhooks"),
			LogName: func() string { return core.Binding.Lineage().String() },
			Tracer:  b.tracer,
		})
	b.subscriber.SendThrough(b.dispatcher.Direct())
	var following []string
	if roles.Projector {
		following = append(projections.Names(), auditlog.Name)
	}
	if roles.Webhooks {
		following = append(following, webhooks.SubscriberName, notices.Name)
	}
	b.run(roles.Projector, "declared projections", declared.NewKeeper(core.Lent, b.feed, b.log).From(b.cfg.ProjectionsDir, core.Log.Last).Run)
	b.run(len(following) > 0, "consumers' session", func(ctx context.Context) error { return b.consumers.Present(ctx, core.dsn) })
	b.run(len(following) > 0, "consumers", func(work context.Context) error {
		// A service that broke gives its leases back at once, not after its last requests:
		// the consumers of another process wait for them.
		work, leave := context.WithCancel(work)
		defer leave()
		defer context.AfterFunc(b.running, func() {
			if b.ctx.Err() == nil {
				leave()
			}
		})()
		return b.consumers.Only(following...)(work)
	})
}

func (b *boot) startChecks() {
	core := b.core
	b.checks = core.newChecks(b.log)
	b.metrics.MustRegister(b.checks)
	core.shutdown.add("checks", workerBudget, func(context.Context) error { b.checks.Stop(); return nil })
	if !b.cfg.Roles.Projector {
		return
	}
	b.run(b.cfg.CheckHours > 0, "daily check", func(ctx context.Context) error {
		return b.checks.Repeat(ctx, time.Duration(b.cfg.CheckHours)*time.Hour, invariantcheck.LookEvery)
	})
	keeper := auditlog.NewKeeper(core.Signer(), b.log)
	b.metrics.MustRegister(keeper)
	b.run(true, "audit", keeper.Run)
	business := overall.NewBusiness(core.DB, b.feed, core.Clock.Now, b.log)
	b.metrics.MustRegister(business)
	b.run(true, "business metrics", func(ctx context.Context) error { return business.Run(ctx, b.head) })
}

func (b *boot) startPolicies() {
	core, wanted := b.core, b.cfg.Roles.Policy
	core.Commands.Statuses = readableStatuses{core.Hosts, core.Binding.Guard().Head, b.consumers.AwaitReads}
	b.policies = scheduler.New(timers.New(core.DB, core.dsn), b.log, policy.All(core.Commands)...)
	b.metrics.MustRegister(b.policies.Collectors()...)
	// One of them is the token of a submission that crashed before its job.
	b.run(wanted, "held secrets", repeating(sweepEvery, core.Vault.ForgetExpired, b.log, "expired secrets stay until the next look"))
	b.run(wanted, "policies", func(ctx context.Context) error { b.policies.Run(ctx); return nil })
}

// mailGather is how long the first notice waits for others of the same moment.
const mailGather = time.Minute

func (b *boot) startWebhooks() {
	wanted := b.cfg.Roles.Webhooks
	b.metrics.MustRegister(b.dispatcher.Collectors()...)
	b.run(wanted, "webhook dispatcher", b.dispatcher.Run)
	if wanted {
		b.mail = mail.NewSender(mail.Config{
			DB:     b.core.DB,
			Server: b.cfg.Mail,
			Links:  b.mailLinks(),
			Poster: b.core.Chats, ChatAddress: b.core.Commands.ChatAddress, EndChat: b.core.Commands.EndChat,
			Grants: b.core.Commands.Grants,
			Log:    b.log.WithField("part", "mail"),
			Gather: mailGather,
		})
		b.metrics.MustRegister(b.mail.Collectors()...)
		b.run(true, "mail sender", b.mail.Run)
		b.run(true, "old letters", repeating(mail.PurgeEvery, b.mail.Purge, b.log, "old letters stay until the next purge"))
	}
}

func (b *boot) startAPI() error {
	wanted := b.cfg.Roles.API
	spool := wire.NewSpool(b.cfg.DataDir)
	b.evidence = evidence.New(evidence.Deps{
		DB:             b.core.Lent,
		Files:          countFiles(b.bucket, b.metrics),
		Commands:       b.core.Commands,
		Vault:          b.core.Vault,
		Spool:          spool,
		BaseURL:        b.cfg.BaseURL,
		RecordingLimit: b.cfg.RecordingLimit,
		Log:            b.log.WithField("part", "api"),
		Now:            b.core.Clock.Now,
	})
	b.run(wanted, "evidence", b.evidence.Run)
	b.handlers = httpapi.New(b.apiDeps(b.log, b.metrics, spool))
	b.run(wanted, "api upkeep", b.handlers.Run)
	if wanted {
		site, err := b.openSite()
		if err != nil {
			return err
		}
		b.core.shutdown.add("api", apiBudget, b.workers.start("api", func(ctx context.Context) error {
			front := ui.Front{
				Site: site, API: mcp.New(b.handlers, b.cfg.BaseURL, buildinfo.This().Version),
				Halted: b.core.Binding.Refuse, Settle: httpapi.Reach{TLS: b.cfg.TLSCert != "", Proxies: b.cfg.TrustedProxies}.Settle,
			}
			server := httpapi.NewServer(front, b.log)
			server.Handler = b.handlers.Parting(server.Handler)
			return httpapi.Serve(ctx, server, httpapi.CapConns(b.api, b.cfg.connections(), b.log), drainTime)
		}))
	}
	b.run(b.admin != nil, "admin", func(ctx context.Context) error {
		return serveAdmin(ctx, httpapi.CapConns(b.admin, adminConnections, b.log), adminHandler(b.cfg.AdminAddr, b.metrics, b.handlers))
	})
	return nil
}
