package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"humanqa/internal/pgdev"
)

// apartClients submit at a time. They are few, because this part measures how long one
// answer takes, not the capacity of the machine.
const apartClients = 4

// apart is part (g). It compares the service as one process with the service as two
// processes, one for the API and one for the workers. Each has a Postgres of its own,
// with the same settings; while one is measured the other is idle.
func apart(ctx context.Context, b *bench) (_ section, err error) {
	var stops stops
	defer func() { err = errors.Join(err, stops.run(ctx)) }()
	program, err := b.build(ctx)
	if err != nil {
		return section{}, err
	}
	var sides []side
	for _, set := range []struct {
		name  string
		start func(context.Context, string, []string) ([]*process, error)
	}{{"one process", b.startWhole}, {"apart", b.startApart}} {
		pg, err := b.startPostgres(ctx, "pg of "+set.name, &stops)
		if err != nil {
			return section{}, err
		}
		data, err := b.folder("data of " + set.name)
		if err != nil {
			return section{}, err
		}
		environ := []string{
			"HUMANQA_DATABASE_URL=" + pg.TCPDSN(pgdev.Database), "HUMANQA_DATA_DIR=" + data,
			"HUMANQA_MASTER_KEY_FILE=" + data + ".keys", "HUMANQA_LOG_FORMAT=json", "HUMANQA_RATE_LIMIT=1000000000",
		}
		running, err := set.start(ctx, program, environ)
		for _, p := range running {
			stops.add(p.stop)
		}
		if err != nil {
			return section{}, err
		}
		s := &service{process: running[0], bench: b, program: program, environ: environ}
		keys := make([]string, apartClients)
		for i := range keys {
			if keys[i], err = s.openAccount(ctx, fmt.Sprintf("bench %d", i)); err != nil {
				return section{}, err
			}
		}
		submitting, err := connectAll(ctx, s.url, keys)
		if err != nil {
			return section{}, err
		}
		stops.add(func(context.Context) error { submitting.close(); return nil })
		sides = append(sides, side{set.name, submitting.round(b.round)})
	}
	found, err := compare(ctx, "POST /v1/jobs", b.rounds, sides...)
	if err != nil {
		return section{}, err
	}
	return section{
		Title: "POST /v1/jobs: the service as one process, and its API apart from its workers",
		Notes: []string{
			fmt.Sprintf("%d clients; rounds of %s, medians of %d; every answer waits until all read models show the job", apartClients,
				b.round, b.rounds),
		},
		Measurements: found,
		Goals: []goal{
			below("apart to one process, p50", found[1].P50/found[0].P50, 1.4, ""),
			below("apart, p99", found[1].P99, 40, "ms"),
		},
	}, nil
}

func (b *bench) startWhole(ctx context.Context, program string, environ []string) ([]*process, error) {
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	p, err := b.start(ctx, "whole", addr, slices.Concat(environ, []string{"HUMANQA_ADDR=" + addr, "HUMANQA_ADMIN_ADDR=off",
		"HUMANQA_VOICE=off"}), program, "serve")
	if err != nil {
		return nil, err
	}
	return []*process{p}, nil
}

// startApart gives the API's process first. The workers use the log of the API's process.
func (b *bench) startApart(ctx context.Context, program string, environ []string) ([]*process, error) {
	var addrs [3]string // the API, its log, the workers' health
	for i := range addrs {
		var err error
		if addrs[i], err = freeAddr(ctx); err != nil {
			return nil, err
		}
	}
	data, err := b.folder("data of the workers")
	if err != nil {
		return nil, err
	}
	api := slices.Concat(environ, []string{
		"HUMANQA_ROLES=api", "HUMANQA_ADDR=" + addrs[0], "HUMANQA_ADMIN_ADDR=off", "HUMANQA_VOICE=off",
		"HUMANQA_EVENTSTORE_LISTEN_INSECURE=" + addrs[1],
	})
	workers := slices.Concat(environ, []string{
		"HUMANQA_ROLES=projector,webhooks,policy", "HUMANQA_ADMIN_ADDR=" + addrs[2],
		"HUMANQA_BASE_URL=http://" + addrs[0], "HUMANQA_EVENTSTORE_URL=esdb://" + addrs[1] + "?tls=false", "HUMANQA_DATA_DIR=" + data,
	})
	processes := make([]*process, 2)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		processes[0], err = b.start(ctx, "api", addrs[0], api, program, "serve")
		return err
	})
	group.Go(func() (err error) {
		processes[1], err = b.start(ctx, "workers", addrs[2], workers, program, "serve")
		return err
	})
	err = group.Wait()
	return slices.DeleteFunc(processes, func(p *process) bool { return p == nil }), err
}
