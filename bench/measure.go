package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// sample is the measurement of one round.
type sample struct {
	window    time.Duration
	latencies []time.Duration // sorted; one for each operation that ended in the window
	all       int             // operations in and outside the window
}

func (s sample) perSecond() float64 { return float64(len(s.latencies)) / s.window.Seconds() }

func (s sample) quantile(q float64) time.Duration {
	if len(s.latencies) == 0 {
		return 0
	}
	return s.latencies[min(int(float64(len(s.latencies))*q), len(s.latencies)-1)]
}

// closedLoop lets each client issue one operation after the other, warms up for
// a fifth of the window, and counts what ends within it. The first error ends
// the round: a rate that includes failures says nothing.
func closedLoop(ctx context.Context, clients int, window time.Duration, op func(ctx context.Context, client int) error) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := time.Now().Add(window / 5)
	until := from.Add(window)

	counted := make([][]time.Duration, clients)
	issued := make([]int, clients)
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for {
				started := time.Now()
				if started.After(until) || ctx.Err() != nil {
					return
				}
				if err := op(ctx, c); err != nil {
					cancel(err)
					return
				}
				issued[c]++
				if ended := time.Now(); ended.After(from) && ended.Before(until) {
					counted[c] = append(counted[c], ended.Sub(started))
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return sample{}, context.Cause(ctx)
	}
	s := sample{window: window, latencies: slices.Concat(counted...)}
	slices.Sort(s.latencies)
	for _, n := range issued {
		s.all += n
	}
	return s, nil
}

// openLoop starts operations on a fixed schedule, each in a goroutine of its own, and
// tells each when it was due. An operation is timed from there, so that a stall counts
// for every operation that was due during it. The first error ends the loop.
func openLoop(ctx context.Context, perSecond int, took time.Duration, op func(ctx context.Context, i int, due time.Time) error) error {
	gap := time.Second / time.Duration(perSecond)
	n := int(took / gap)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	pace := time.NewTimer(0)
	defer pace.Stop()
	var wg sync.WaitGroup
	for i := 0; i < n && ctx.Err() == nil; i++ {
		due := began.Add(time.Duration(i) * gap)
		pace.Reset(time.Until(due))
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
		wg.Go(func() {
			if err := op(ctx, i, due); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// timedLoop is openLoop that keeps how long each operation took.
func timedLoop(ctx context.Context, perSecond int, took time.Duration, op func(ctx context.Context, i int) error) (sample, error) {
	var mu sync.Mutex
	got := sample{window: took}
	err := openLoop(ctx, perSecond, took, func(ctx context.Context, i int, due time.Time) error {
		if err := op(ctx, i); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		got.latencies = append(got.latencies, time.Since(due))
		return nil
	})
	slices.Sort(got.latencies)
	return got, err
}

// side is one of the things that are compared.
type side struct {
	name  string
	round func(context.Context) (sample, error)
}

// interleave measures the sides in turn, round by round, and gives each one's
// samples.
func interleave(ctx context.Context, rounds int, sides ...side) ([][]sample, error) {
	samples := make([][]sample, len(sides))
	for range rounds {
		for i, s := range sides {
			got, err := s.round(ctx)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], got)
		}
	}
	return samples, nil
}

// measurement is the medians of a side's rounds.
type measurement struct {
	What      string  `json:"what"`
	Side      string  `json:"side"`
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50Millis"`
	P99       float64 `json:"p99Millis"`
}

func summarise(what, side string, samples []sample) measurement {
	return measurement{
		What: what, Side: side,
		PerSecond: medianOf(samples, sample.perSecond),
		P50:       medianOf(samples, func(s sample) float64 { return millis(s.quantile(0.50)) }),
		P99:       medianOf(samples, func(s sample) float64 { return millis(s.quantile(0.99)) }),
	}
}

// compare measures sides and gives one measurement for each, in their order.
func compare(ctx context.Context, what string, rounds int, sides ...side) ([]measurement, error) {
	samples, err := interleave(ctx, rounds, sides...)
	if err != nil {
		return nil, err
	}
	out := make([]measurement, len(sides))
	for i, s := range sides {
		out[i] = summarise(what, s.name, samples[i])
	}
	return out, nil
}

func medianOf(samples []sample, value func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = value(s)
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// turns is how many operations of inTurns run at a time.
const turns = 32

// inTurns runs n operations, a few at a time. The first error ends it.
func inTurns(ctx context.Context, n int, op func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(turns)
	for i := range n {
		group.Go(func() error { return op(ctx, i) })
	}
	return group.Wait()
}
