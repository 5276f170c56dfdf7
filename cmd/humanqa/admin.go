package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/httpapi"
)

// adminHandler shows what operators look at: metrics, profiles, and the health
// of processes that run no API. It has no password: its address is private
// unless an operator makes it otherwise, and it answers by that address only.
func adminHandler(address string, metrics *prometheus.Registry, health http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{Registry: metrics}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.Handle("GET /healthz", health)
	mux.Handle("GET /readyz", health)
	return byName(address, mux)
}

// byName refuses requests for any host but this machine's loopback names and the
// configured address. A web page whose own name is made to lead here (DNS
// rebinding) would otherwise read along in an operator's browser. Where every
// address is served, any address will do: names are what can be made to lead here.
func byName(address string, next http.Handler) http.Handler {
	configured, _, err := net.SplitHostPort(address)
	if err != nil {
		configured = ""
	}
	own := net.ParseIP(configured)
	everywhere := configured == "" || own != nil && own.IsUnspecified()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		ip := net.ParseIP(strings.Trim(host, "[]"))
		switch {
		case host == "": // HTTP/1.0: no browser
		case strings.EqualFold(host, "localhost"), strings.EqualFold(host, configured):
		case ip != nil && (ip.IsLoopback() || everywhere || ip.Equal(own)):
		default:
			http.Error(w, "this address answers to localhost, 127.0.0.1, [::1] and the host of HUMANQA_ADMIN_ADDR only", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// adminConnections are open at a time: few look at metrics.
const adminConnections = 100

// serveAdmin serves until ctx ends. A profile that is being taken is cut off:
// nobody waits for it at a stop.
func serveAdmin(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ConnState: httpapi.TrackConn}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // ends Serve below
	defer stop()
	if err := srv.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// problems says why the service is not ready, and what is worth a note: what the log, Postgres and the
// read models lack to answer for everything that was written. Errors name
// addresses and more: they are for the log, the reasons for everybody.
func (s *service) problems(ctx context.Context) []httpapi.Problem {
	var found []httpapi.Problem
	add := func(part, reason string, err error) {
		if err != nil {
			found = append(found, httpapi.Problem{Part: part, Reason: reason, Cause: err})
		}
	}
	if !s.started.Load() {
		found = append(found, httpapi.Problem{Part: "service", Reason: "it is starting"})
	}
	if s.core.postgres != nil && s.core.postgres.Full() {
		found = append(found, httpapi.Problem{Part: "postgres", Reason: "its disk is full"})
	}
	add("postgres", "it does not answer", s.core.db.PingContext(ctx))
	if problem := s.core.clock.Problem(); problem != "" {
		found = append(found, httpapi.Problem{Part: "clock", Reason: problem})
	}
	if strange := s.core.binding.Problem(); strange != nil {
		found = append(found, httpapi.Problem{Part: "log", Reason: strange.Message, Cause: strange})
	}
	head, err := s.core.log.Head(ctx)
	add("log", "it does not answer", err)
	if err == nil {
		err = s.core.log.Writable(ctx)
		reason := "it does not answer"
		if full := (*domain.Error)(nil); errors.As(err, &full) {
			reason = full.Message
		}
		add("log", reason, err)
	}
	if len(found) > 0 {
		return found // the rest would only repeat it
	}
	var notes []httpapi.Problem
	all, err := s.consumers.Status(ctx)
	add("projections", "their state cannot be read", err)
	for _, status := range all {
		if problem := status.Problem(); problem != "" {
			found = append(found, httpapi.Problem{Part: "projections", Reason: problem})
		}
		for _, note := range status.Notes() {
			notes = append(notes, httpapi.Problem{Note: true, Part: "projections", Reason: note})
		}
	}
	if problem := s.dispatcher.Problem(); problem != "" {
		found = append(found, httpapi.Problem{Part: "webhooks", Reason: problem})
	}
	for _, problem := range s.policies.Problems() {
		found = append(found, httpapi.Problem{Part: "policies", Reason: problem})
	}
	if len(found) > 0 {
		return append(found, notes...)
	}
	short, cancel := context.WithTimeout(ctx, catchUpLimit)
	defer cancel()
	add("projections", "they are behind the log", s.consumers.WaitFor(short, head))
	return append(found, notes...)
}

// catchUpLimit is how far the read models of a ready service may be behind the
// log.
const catchUpLimit = 2 * time.Second

// listenAdmin opens the address of adminHandler. The one that nobody asked for
// by name may be taken, by a second service on this machine or by anything:
// another one then serves as well, and the banner names it.
func listenAdmin(ctx context.Context, cfg Config, log *logrus.Logger) (net.Listener, error) {
	l, err := listen(ctx, "HUMANQA_ADMIN_ADDR", cfg.AdminAddr)
	if err == nil || cfg.AdminAddrGiven || !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	host, _, _ := net.SplitHostPort(cfg.AdminAddr) // it was checked
	if l, err = listen(ctx, "HUMANQA_ADMIN_ADDR", net.JoinHostPort(host, "0")); err != nil {
		return nil, err
	}
	log.Warnf("%s is taken, metrics are at %s: set HUMANQA_ADMIN_ADDR to keep them at one address", cfg.AdminAddr, l.Addr())
	return l, nil
}

// listen opens a listener; the address in use is the one mistake that everybody
// makes, so it gets its next step.
func listen(ctx context.Context, setting, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w: set %s to a free address", err, setting)
	}
	return l, nil
}
