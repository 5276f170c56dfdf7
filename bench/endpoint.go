package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// endpointClients submit at a time, each on a connection that is kept.
const endpointClients = 64

// submission is an ordinary one: it brings its checklist.
const submission = `{
	"url": "https://shop.example.com/checkout",
	"title": "Checkout with a voucher",
	"description": "Put two things into the cart, use the voucher SPRING, pay by invoice, and read the confirmation.",
	"jobType": "Payment Flow",
	"targetDevice": "iPhone 15",
	"checklistItems": [
		{"description": "The voucher lowers the total", "expectedOutcome": "Ten per cent less", "severity": "critical"},
		{"description": "Invoice is offered as a way to pay", "severity": "major"},
		{"description": "The confirmation names the order", "severity": "minor"}
	]
}`

// endpoint is part (b). Service and twin are processes of their own with a
// Postgres of their own, with the same settings; while one is measured the
// other is idle.
func endpoint(ctx context.Context, b *bench) (_ section, err error) {
	var stops stops
	defer func() { err = errors.Join(err, stops.run(ctx)) }()
	s, err := b.openService(ctx)
	if err != nil {
		return section{}, err
	}
	other, otherKeys, err := b.startTwin(ctx, endpointClients+1, &stops)
	if err != nil {
		return section{}, err
	}
	many, err := s.besideTwin(ctx, fmt.Sprintf("%d accounts", endpointClients), s.keys, other, otherKeys[:endpointClients])
	if err != nil {
		return section{}, err
	}
	before := s.jobs
	one, err := s.besideTwin(ctx, "one account", repeat(s.hot), other, repeat(otherKeys[endpointClients]))
	if err != nil {
		return section{}, err
	}
	// A fast service that loses jobs is not fast.
	listed, err := s.jobsOf(ctx, s.hot)
	if err != nil {
		return section{}, err
	}
	if answered := s.jobs - before; listed != answered {
		return section{}, fmt.Errorf("%d submissions were answered 201, the account has %d jobs", answered, listed)
	}
	return section{
		Title: "POST /v1/jobs: the service, and a CRUD twin with the same HTTP stack",
		Notes: []string{
			fmt.Sprintf("%d clients with connections that are kept; rounds of %s, medians of %d; every answer checked", endpointClients,
				b.round, b.rounds),
			"service: a charge and a job in the log, answered once all read models show them; webhooks and policies run",
			"twin: one transaction that locks the balance row, lowers it, inserts job and outbox row; all prepared; nobody reads the outbox",
		},
		Measurements: slices.Concat(many, one),
		Goals: []goal{
			atLeast("service to twin, 64 accounts", many[0].PerSecond/many[1].PerSecond, 0.55),
			atLeast("service to twin, one account", one[0].PerSecond/one[1].PerSecond, 2),
		},
	}, nil
}

// besideTwin measures both, the service first.
func (s *service) besideTwin(ctx context.Context, what string, keys []string, other *process, otherKeys []string) ([]measurement, error) {
	ours, err := connectAll(ctx, s.url, keys)
	if err != nil {
		return nil, err
	}
	defer ours.close()
	theirs, err := connectAll(ctx, other.url, otherKeys)
	if err != nil {
		return nil, err
	}
	defer theirs.close()
	found, err := compare(ctx, what, s.bench.rounds,
		side{"service", s.counted(what, ours)}, side{"twin", theirs.round(s.bench.round)})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, errors.Join(s.ifDead(err), other.ifDead(nil)))
	}
	return found, nil
}

// counted measures a round against the service, and adds its jobs to s.jobs.
func (s *service) counted(what string, cs clients) func(context.Context) (sample, error) {
	round := cs.round(s.bench.round)
	return func(ctx context.Context) (sample, error) {
		profiled := make(chan error, 1)
		if s.bench.profiles != "" {
			go func() { profiled <- s.profile(ctx, what, s.bench.round) }()
		} else {
			profiled <- nil
		}
		got, err := round(ctx)
		s.jobs += got.all
		return got, errors.Join(err, <-profiled)
	}
}

func repeat(key string) []string { return slices.Repeat([]string{key}, endpointClients) }
