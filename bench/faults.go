package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"humanqa/internal/pgdev"
)

const (
	// faultClients submit at a time.
	faultClients = 8
	// faultTime is how long the log is out of reach.
	faultTime = 20 * time.Second
	// probeTime is how long a service may take to find that out. What is asked in it waits
	// for the log, and is not counted.
	probeTime = 3 * time.Second
	// refusedWithin is the goal for each answer behind it.
	refusedWithin = 2000
)

// faults is part (m): how long a client waits for its refusal while the log is frozen,
// and while it is gone. The log belongs to a process of its own.
func faults(ctx context.Context, b *bench) (_ section, err error) {
	var stops stops
	defer func() { err = errors.Join(err, stops.run(ctx)) }()
	log, api, key, err := b.startBesideLog(ctx, &stops)
	if err != nil {
		return section{}, err
	}
	frozen, err := api.whileGone(ctx, key, func() error { return log.cmd.Process.Signal(syscall.SIGSTOP) })
	if err := errors.Join(err, log.cmd.Process.Signal(syscall.SIGCONT)); err != nil {
		return section{}, err
	}
	if err := api.becomeReady(ctx, readyLimit); err != nil {
		return section{}, err
	}
	gone, err := api.whileGone(ctx, key, func() error { return log.cmd.Process.Kill() })
	if err != nil {
		return section{}, err
	}
	measured := func(what string, s sample) measurement {
		return measurement{What: "a refused POST /v1/jobs", Side: what, PerSecond: s.perSecond(),
			P50: millis(s.quantile(0.5)), P99: millis(s.quantile(0.99))}
	}
	return section{
		Title: "refusals while the log does not answer",
		Notes: []string{
			fmt.Sprintf("%d clients, one request after the other, for %s; what was asked in the first %s is left out", faultClients, faultTime, probeTime),
		},
		Measurements: []measurement{measured("the log's process is frozen", frozen), measured("it was killed", gone)},
		Goals: []goal{
			below("frozen, p99", millis(frozen.quantile(0.99)), refusedWithin, "ms"),
			below("killed, p99", millis(gone.quantile(0.99)), refusedWithin, "ms"),
		},
	}, nil
}

// startBesideLog starts a process that holds the log, and the service in another one.
func (b *bench) startBesideLog(ctx context.Context, stops *stops) (log *process, api *service, key string, err error) {
	program, err := b.build(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	pg, err := b.startPostgres(ctx, "pg of faults", stops)
	if err != nil {
		return nil, nil, "", err
	}
	data, err := b.folder("data of faults")
	if err != nil {
		return nil, nil, "", err
	}
	var addrs [3]string // the service, the log, the health of the log's process
	for i := range addrs {
		if addrs[i], err = freeAddr(ctx); err != nil {
			return nil, nil, "", err
		}
	}
	both := []string{
		"HUMANQA_DATABASE_URL=" + pg.TCPDSN(pgdev.Database), "HUMANQA_MASTER_KEY_FILE=" + data + ".keys",
		"HUMANQA_LOG_FORMAT=json", "HUMANQA_RATE_LIMIT=1000000000", "HUMANQA_BASE_URL=http://" + addrs[0],
	}
	log, err = b.start(ctx, "the log", addrs[2], slices.Concat(both, []string{
		"HUMANQA_ROLES=projector,webhooks,policy", "HUMANQA_DATA_DIR=" + data + ".log", "HUMANQA_ADMIN_ADDR=" + addrs[2],
		"HUMANQA_EVENTSTORE_LISTEN_INSECURE=" + addrs[1],
	}), program, "serve")
	if err != nil {
		return nil, nil, "", err
	}
	stops.add(log.stop)
	api = &service{bench: b, program: program, environ: slices.Concat(both, []string{"HUMANQA_DATA_DIR=" + data, "HUMANQA_ADDR=" + addrs[0],
		"HUMANQA_ADMIN_ADDR=off", "HUMANQA_VOICE=off", "HUMANQA_ROLES=api",
		"HUMANQA_EVENTSTORE_URL=esdb://" + addrs[1] + "?tls=false"})}
	if err := api.run(ctx, addrs[0]); err != nil {
		return nil, nil, "", err
	}
	stops.add(func(ctx context.Context) error { return api.stop(ctx) })
	key, err = api.openAccount(ctx, "bench")
	return log, api, key, err
}

// whileGone submits while the log is out of reach, and times the refusals.
func (s *service) whileGone(ctx context.Context, key string, fault func() error) (sample, error) {
	if err := s.call(ctx, http.StatusCreated, http.MethodPost, "/v1/jobs", key, json.RawMessage(submission), nil); err != nil {
		return sample{}, err
	}
	if err := fault(); err != nil {
		return sample{}, err
	}
	began := time.Now()
	found := sample{window: faultTime - probeTime}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var wrong error
	for range faultClients {
		wg.Go(func() {
			for time.Since(began) < faultTime {
				asked := time.Now()
				err := s.call(ctx, http.StatusServiceUnavailable, http.MethodPost, "/v1/jobs", key, json.RawMessage(submission), nil)
				mu.Lock()
				wrong = errors.Join(wrong, err)
				if asked.Sub(began) > probeTime {
					found.latencies = append(found.latencies, time.Since(asked))
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(found.latencies)
	return found, wrong
}
