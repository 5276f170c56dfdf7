package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/vault"
	"humanqa/projections"
)

const (
	visibleRate     = 500 // commands a second
	visibleAccounts = 64
)

// visible is part (c): node, commands, feed and every projection in this process, as
// `serve` wires them, under an open loop. Commands are issued on a fixed schedule and
// timed from the schedule, so that a stall counts for every command that was due during
// it.
func visible(ctx context.Context, b *bench) (_ section, err error) {
	var stops stops
	defer func() { err = errors.Join(err, stops.run(ctx)) }()
	s, err := b.assemble(ctx, &stops)
	if err != nil {
		return section{}, err
	}
	took := max(10*time.Second, 3*b.round)
	if _, err := s.submitAtRate(ctx, took/5); err != nil { // warm-up
		return section{}, err
	}
	got, err := s.submitAtRate(ctx, took)
	if err != nil {
		return section{}, err
	}
	n := len(got.command)
	whole := sample{window: took, latencies: got.whole}
	return section{
		Title: "append to visible in every read model",
		Notes: []string{
			fmt.Sprintf("%d submissions (a charge and a job each) over %d accounts, %d a second, for %s", n, visibleAccounts, visibleRate,
				took),
			"command: from when it was due to its answer; visible: from the answer to its effect in all read models; both: the sum",
		},
		Measurements: []measurement{
			summarise("", "command", []sample{{window: took, latencies: got.command}}),
			summarise("", "visible", []sample{{window: took, latencies: got.visible}}),
			summarise("", "both", []sample{whole}),
		},
		Goals: []goal{below("due to visible at 500 commands/s, p99", millis(whole.quantile(0.99)), 35, "ms")},
	}, nil
}

// assembly is the service without HTTP.
type assembly struct {
	commands *command.Service
	waitFor  func(context.Context, domain.Position) error
	accounts []string
}

func (b *bench) assemble(ctx context.Context, stops *stops) (*assembly, error) {
	pg, err := b.startPostgres(ctx, "visible", stops)
	if err != nil {
		return nil, err
	}
	client, db, err := b.startLog(ctx, pg, "visible", stops)
	if err != nil {
		return nil, err
	}
	secrets, err := vault.Open(ctx, vault.Config{KeyFile: filepath.Join(b.work, "visible.key"), DB: db})
	if err != nil {
		return nil, err
	}
	commands := command.New(command.Deps{
		Log: client, Sealer: secrets, AI: commandtest.AI{}, Reads: commandtest.NoReads{}, Now: time.Now, ClaimsPerChecker: 1,
	})
	stops.add(func(context.Context) error { commands.Drain(); return nil })

	feed := eventstore.NewFeed(client, b.log)
	supervisor := consumer.New(db, feed, b.log, projections.All()...)
	if err := supervisor.Prepare(ctx); err != nil {
		return nil, err
	}
	stops.add(background(ctx, feed.Run))
	stops.add(background(ctx, supervisor.Run))

	s := &assembly{commands: commands, waitFor: supervisor.WaitFor}
	for i := range visibleAccounts {
		cause := command.Cause{CommandID: domain.NewCommandID(), Actor: "operator"}
		id, _, err := commands.CreateAccount(ctx, cause, fmt.Sprintf("bench %d", i), false)
		if err != nil {
			return nil, err
		}
		cause = command.Cause{CommandID: domain.NewCommandID(), Actor: "operator", AccountID: id}
		if _, _, err := commands.GrantCredits(ctx, cause, id, plenty, nil, "bench"); err != nil {
			return nil, err
		}
		s.accounts = append(s.accounts, id)
	}
	return s, nil
}

// background runs a worker; the stop it gives waits for its end.
func background(ctx context.Context, run func(context.Context) error) func(context.Context) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func(context.Context) error {
		cancel()
		return <-ended
	}
}

// latencies of the operations of a run, each list sorted.
type visibility struct{ command, visible, whole []time.Duration }

// submitAtRate issues commands at the rate.
func (s *assembly) submitAtRate(ctx context.Context, took time.Duration) (visibility, error) {
	n := int(took / (time.Second / visibleRate))
	v := visibility{command: make([]time.Duration, n), visible: make([]time.Duration, n), whole: make([]time.Duration, n)}
	err := openLoop(ctx, visibleRate, took, func(ctx context.Context, i int, due time.Time) error {
		answered, seen, err := s.submit(ctx, s.accounts[i%len(s.accounts)])
		if err != nil {
			return err
		}
		v.command[i], v.visible[i], v.whole[i] = answered.Sub(due), seen.Sub(answered), seen.Sub(due)
		return nil
	})
	if err != nil {
		return visibility{}, err
	}
	slices.Sort(v.command)
	slices.Sort(v.visible)
	slices.Sort(v.whole)
	return v, nil
}

func (s *assembly) submit(ctx context.Context, accountID string) (answered, seen time.Time, err error) {
	out, err := s.commands.SubmitJob(ctx,
		command.Cause{CommandID: domain.NewCommandID(), Actor: "bench", AccountID: accountID},
		command.SubmitJob{
			Submission: job.Submission{
				URL: "https://shop.example.com/checkout", Title: "Checkout with a voucher",
				Description: "Put two things into the cart, use the voucher, pay by invoice.",
				Type:        job.PaymentFlow, TypeEcho: "Payment Flow", Source: "api",
			},
			Items: []command.NewItem{{Description: "The voucher lowers the total", Severity: job.Major}},
		})
	if err != nil {
		return answered, seen, err
	}
	answered = time.Now()
	err = s.waitFor(ctx, out.Position)
	return answered, time.Now(), err
}
