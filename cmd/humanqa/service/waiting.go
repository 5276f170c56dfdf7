package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/lib/pq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/node"
	"humanqa/httpapi"
	"humanqa/httpapi/wire"
	"humanqa/internal/backoff"
	"humanqa/internal/pgpool"
)

const (
	// reachLimit is how long a part may take to answer at a start before it counts as away.
	reachLimit = 20 * time.Second
	// quietStart is how long a start may take before its addresses say that it is starting.
	quietStart = 2 * time.Second
	// startFirst and startLast are the shortest and longest pause between two tries.
	startFirst, startLast = 200 * time.Millisecond, time.Second
)

// awayError says that a part of the service does not answer, which a later try may mend.
type awayError struct {
	part, setting string
	cause         error
}

func (e *awayError) Error() string {
	return fmt.Sprintf("%s does not answer: does it run, and is %s right? %v", e.part, e.setting, e.cause)
}

// postgresAway gives the error of a connect to Postgres as an awayError if it may pass.
func postgresAway(err error) error {
	refused, _ := errors.AsType[*pq.Error](err)
	_, network := errors.AsType[net.Error](err)
	if network || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrBadConn) ||
		refused != nil && (refused.Code.Class() == "08" || refused.Code.Class() == "53" || refused.Code.Class() == "57") {
		return &awayError{"postgres", "HUMANQA_DATABASE_URL", err}
	}
	return err
}

// lacksRights says what to do where Postgres refuses the service's role.
func lacksRights(err error) error {
	if refused, ok := errors.AsType[*pq.Error](err); ok && refused.Code == "42501" {
		return fmt.Errorf("%w: the role of HUMANQA_DATABASE_URL lacks rights, and docs/operations.md (\"Your own Postgres\") has the statements that give them", err)
	}
	return err
}

// needsSessions says what to do about a pooler that keeps no sessions.
func (c Config) needsSessions(err error) error {
	switch {
	case !errors.Is(err, pgpool.ErrNoSessions):
		return err
	case c.DatabaseDirectURL != "":
		return BadSetting("HUMANQA_DATABASE_DIRECT_URL", "%v: name Postgres itself", err)
	}
	return BadSetting("HUMANQA_DATABASE_URL", "%v: set HUMANQA_DATABASE_DIRECT_URL to Postgres itself, or pool_mode = session there", err)
}

// directURL is your own Postgres itself; empty: the embedded one.
func (c Config) directURL() string { return cmp.Or(c.DatabaseDirectURL, c.DatabaseURL) }

// passing names what a start waits for, if the error may pass.
func passing(err error) (missing httpapi.Problem, ok bool) {
	if away, ok := errors.AsType[*awayError](err); ok {
		return httpapi.Problem{Part: away.part, Reason: "it does not answer"}, true
	}
	return httpapi.Problem{Part: "log", Reason: "another process has its lock"}, errors.Is(err, node.ErrLocked)
}

// startPatiently is Start that goes on trying while Postgres or the log does not answer, or
// another process has the log's lock, for days if need be. Meanwhile the service's addresses
// say so.
func startPatiently(ctx context.Context, cfg Config, log *logrus.Logger, metrics prometheus.Registerer) (*Core, error) {
	room := &waitingRoom{}
	room.missing.Store(&httpapi.Problem{Part: "service", Reason: "it is starting"})
	opened := make(chan struct{})
	opening := time.AfterFunc(quietStart, func() { defer close(opened); room.open(ctx, cfg, log) })
	defer func() {
		if !opening.Stop() {
			<-opened
		}
		room.close()
	}()
	for wait := startFirst; ; wait = min(2*wait, startLast) {
		core, err := Start(ctx, cfg, log, metrics)
		missing, ok := passing(err)
		if !ok || ctx.Err() != nil {
			return core, err
		}
		if *room.missing.Swap(&missing) != missing {
			log.WithError(err).Warn("the start waits, and tries again and again")
		}
		tellSystemd(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", startLimit.Microseconds()), log)
		_ = backoff.Wait(ctx, wait) // the next try finds out that ctx has ended
	}
}

// headPatiently gives the log's end, and asks again while the log does not answer.
func headPatiently(ctx context.Context, of *eventstore.Client, log logrus.FieldLogger) (domain.Position, error) {
	for {
		head, err := of.Head(ctx)
		if err == nil || ctx.Err() != nil || !domain.IsKind(err, domain.KindUnavailable) {
			return head, err
		}
		log.WithError(err).Warn("the start waits for the log, asking again")
		_ = backoff.Wait(ctx, startFirst) // the next try finds out that ctx has ended
	}
}

// waitingRoom answers in place of a service that is not there yet.
type waitingRoom struct {
	missing atomic.Pointer[httpapi.Problem]
	servers []*http.Server
}

// open serves the API's address and that of operators. An address that cannot be had is left
// to the start, whose error says so.
func (w *waitingRoom) open(ctx context.Context, cfg Config, log *logrus.Logger) {
	serve := func(address string, secure bool) {
		l, err := listen(ctx, "", address)
		if err != nil {
			return
		}
		if secure {
			pair, err := openCertificate(cfg.TLSCert, cfg.TLSKey, log)
			if err != nil {
				_ = l.Close() // nobody connected
				return
			}
			l = tls.NewListener(l, pair.config())
		}
		server := httpapi.NewServer(w, log)
		w.servers = append(w.servers, server)
		go func() { _ = server.Serve(l) }() // until close
	}
	if cfg.Roles.API {
		serve(cfg.Addr, cfg.TLSCert != "")
	}
	if cfg.AdminAddr != "" {
		serve(cfg.AdminAddr, false)
	}
}

func (w *waitingRoom) close() {
	for _, server := range w.servers {
		_ = server.Close() // what it answers is small
	}
}

// ServeHTTP implements http.Handler.
func (w *waitingRoom) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	id, missing := wire.RequestID(r.Header), w.missing.Load()
	ans := wire.Answer{Status: http.StatusOK, Header: http.Header{wire.RequestIDHeader: {id}}, Body: []byte(`{"status":"ok"}`)}
	if r.URL.Path != "/healthz" {
		unready := &domain.Error{Kind: domain.KindUnavailable, Code: domain.CodeUnavailable, Message: missing.Part + ": " + missing.Reason}
		ans.Status, ans.Body = http.StatusServiceUnavailable, wire.Envelope(unready.With("problems", []httpapi.Problem{*missing}), id)
		ans.Header.Set("Retry-After", "1")
	}
	ans.Send(to)
}
