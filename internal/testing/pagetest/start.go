package pagetest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/policy"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/node"
	"humanqa/httpapi"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/signin"
	"humanqa/httpapi/ui"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/ai"
	"humanqa/internal/blob"
	"humanqa/internal/credential"
	"humanqa/internal/scheduler"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest/alltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/vault"
	"humanqa/projections"
	"humanqa/projections/changes"
	"humanqa/projections/events"
	"humanqa/projections/timers"
	"humanqa/webhooks"
)

// Pages gives the pages that a package adds to those of signing in. The service has an
// owner, and no test yet.
type Pages func(*Service) ([]fs.FS, []ui.Page)

// Start runs a service of the test's own: for a test that looks at the log, at lists of
// everybody's things or at the whole database, or that takes the service away.
func Start(t *testing.T, pages Pages) *Service {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	return start(t, log, pages).In(t)
}

// start runs the service as long as its owner.
func start(owner testing.TB, log *logrus.Logger, pages Pages) *Service {
	owner.Helper()
	s := &Service{Owner: owner, DB: alltest.Database.New(owner), away: new(atomic.Bool), refuses: new(atomic.Bool)}
	dir, err := os.MkdirTemp("", "ui") //nolint:usetesting // a socket's path must be short, TempDir holds the test's name
	must.NoError(owner, err)
	owner.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "node")
	n, err := node.Start(owner.Context(), node.Config{DSN: pgtest.DSN(owner, s.DB), Socket: socket, MaxAppendSize: node.MinAppendSize,
		Log: log}) // as a service does by default
	must.NoError(owner, err)
	owner.Cleanup(func() { ended(owner, n.Close(context.Background())) })
	client, err := eventstore.OpenSocket(socket, eventually.Patience, log)
	must.NoError(owner, err)
	owner.Cleanup(func() { ended(owner, client.Close()) })

	feed := eventstore.NewFeed(client, log)
	s.Vault, err = vault.Open(owner.Context(), vault.Config{KeyFile: filepath.Join(dir, "key"), DB: s.DB})
	must.NoError(owner, err)
	files, err := blob.Open(owner.Context(), blob.Directory(filepath.Join(dir, "evidence")))
	must.NoError(owner, err)
	s.Reads = projections.NewReads(s.DB)
	s.Commands = command.New(command.Deps{
		Log: client, Sealer: s.Vault, Tokens: s.Vault, Statuses: commandtest.CodeHost{}, AI: ai.New(ai.Config{Log: log}),
		Reads: projections.CommandReads{Reads: s.Reads},
		Now:   time.Now, ClaimsPerChecker: 1,
	})
	supervisor := consumer.New(s.DB, feed, log,
		append(projections.All(), webhooks.NewSubscriber(s.DB, client, "https://qa.example"))...)
	s.WaitFor, s.Log, s.Consumers = supervisor.WaitFor, client, supervisor
	s.Changes = changes.New(feed, s.DB, supervisor.WaitFor, log)

	ln, err := (&net.ListenConfig{}).Listen(owner.Context(), "tcp", "127.0.0.1:0")
	must.NoError(owner, err)
	s.BaseURL = "http://" + ln.Addr().String()
	s.Origin = ui.Origin(s.BaseURL)
	s.Credentials, err = credential.Open(credential.Config{DB: s.DB, Now: time.Now, BaseURL: s.BaseURL, Grants: s.Commands.Grants,
		Sealer: s.Vault, HashMemory: 64})
	must.NoError(owner, err)
	spool := wire.NewSpool("")
	s.Evidence = evidence.New(evidence.Deps{
		DB: s.DB, Files: files, Commands: s.Commands, Vault: s.Vault, Spool: spool, BaseURL: s.BaseURL, Log: log, Now: time.Now,
	})
	patiently := func(ctx context.Context, at domain.Position) error { // a busy machine is no outage
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return supervisor.WaitFor(ctx, at)
	}
	s.API = httpapi.New(httpapi.Deps{
		Shared: v1.Shared{
			Commands: s.Commands, Reads: s.Reads, DB: s.DB, Lent: s.DB, Evidence: s.Evidence,
			Head: func(ctx context.Context) (domain.Position, error) { return client.Head(context.WithoutCancel(ctx)) },
			Log:  log, Now: time.Now, BaseURL: s.BaseURL,
		},
		WaitFor: patiently, FeedShown: func(ctx context.Context) error { return supervisor.CatchUp(ctx, events.Name) },
		WebhooksShown: func(ctx context.Context) error { return supervisor.CatchUp(ctx, webhooks.SubscriberName) },
		Ready:         func(context.Context) []httpapi.Problem { return nil },
		Vault:         s.Vault, Spool: spool, RequestTime: patience,
	})
	templates, table := pages(s)
	s.Site, err = ui.New(ui.Config{
		Credentials: s.Credentials, People: s.Reads.People, Changes: s.Changes,
		Admit: s.API.Admit, Address: admit.Address, WaitFor: supervisor.WaitFor, Fresh: s.API.Fresh,
		Waiting: s.Reads.Jobs.CountAsking, PageTime: patience,
		Log: log, Now: time.Now, BaseURL: s.BaseURL,
		Templates: append([]fs.FS{signin.Templates}, templates...),
		Pages: slices.Concat(
			signin.Pages(signin.Deps{Credentials: s.Credentials, People: s.Reads.People, Join: s.Commands.JoinPerson, BaseURL: s.BaseURL}),
			table,
		),
	})
	must.NoError(owner, err)

	owner.Cleanup(s.Commands.Drain) // it runs once the parts started below have ended
	front := gate{ui.Front{Site: s.Site, API: s.API, Settle: httpapi.Reach{}.Settle}, s.away, s.refuses}
	for _, part := range []func(context.Context) error{
		s.API.Run, s.Evidence.Run, feed.Run, supervisor.Run,
		func(ctx context.Context) error { return s.Changes.Run(ctx, domain.Position{}) },
		func(ctx context.Context) error {
			scheduler.New(timers.New(s.DB, pgtest.DSN(owner, s.DB)), log, policy.All(s.Commands)...).Run(ctx)
			return nil
		},
		func(ctx context.Context) error {
			return httpapi.Serve(ctx, httpapi.NewServer(front, log), ln, 5*time.Second)
		},
	} {
		background(owner, part)
	}
	return s
}

// background runs a part of the service as long as its owner.
func background(owner testing.TB, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(owner.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	owner.Cleanup(func() {
		cancel()
		ended(owner, <-done)
	})
}

// ended fails the owner for the error with which a part of the service ended.
func ended(owner testing.TB, err error) {
	owner.Helper()
	if err != nil && !errors.Is(err, context.Canceled) {
		owner.Errorf("a part of the service: %v", err)
	}
}

// gate cuts connections off while the service is away, and refuses streams as a proxy does.
type gate struct {
	ui.Front
	away, refuses *atomic.Bool
}

func (g gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.away.Load() {
		panic(http.ErrAbortHandler)
	}
	if g.refuses.Load() && r.URL.Path == "/live" {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	g.Front.ServeHTTP(w, r)
}

// RefuseStreams answers pages that ask for their stream as a proxy does while the service starts.
func (s *Service) RefuseStreams(refuses bool) { s.refuses.Store(refuses) }

// Away makes the service answer no request, until it is back.
func (s *Service) Away(away bool) { s.away.Store(away) }
