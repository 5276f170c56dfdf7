package service

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

	"humanqa/httpapi"
	"humanqa/internal/backoff"
)

// adminHandler serves operators: metrics, profiles, and the health
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
// configured address. A web page whose own name is made to lead here (DNS rebinding)
// would otherwise read the answers in an operator's browser. Where every address is
// served, any address will do: only names can be made to lead here.
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
			http.Error(w, "this address answers to localhost, 127.0.0.1, [::1] and the host of HUMANQA_ADMIN_ADDR only",
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// adminConnections are open at a time: few look at metrics.
const adminConnections = 100

// serveAdmin serves until ctx ends. A profile that is being taken is cut off:
// a stop does not wait for it.
func serveAdmin(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, ConnState: httpapi.TrackConn}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // ends Serve below
	defer stop()
	if err := srv.Serve(l); ctx.Err() == nil {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// listenAdmin opens the address of adminHandler. The default address may be taken, by a
// second service on this machine or by another program: then another one serves as well,
// and the banner names it.
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

// addressFreed is how long an address may stay in use behind its listener: while the process
// before this one ends, or while a child of it is between fork and exec.
const addressFreed = 2 * time.Second

// listen opens a listener. An address in use is the most common mistake, so the error has
// its next step.
func listen(ctx context.Context, setting, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	for began := time.Now(); ; {
		l, err := lc.Listen(ctx, "tcp", addr)
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, syscall.EADDRINUSE), time.Since(began) > addressFreed, backoff.Wait(ctx, addressFreed/40) != nil:
			return nil, fmt.Errorf("%w: set %s to a free address", err, setting)
		}
	}
}
