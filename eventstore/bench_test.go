package eventstore

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/node"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// BenchmarkAppend writes through the client to an embedded node, each writer to
// streams of its own: ns/op is what one append costs the whole system.
func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 64, 256} {
		b.Run(strconv.Itoa(writers), func(b *testing.B) {
			c := benchClient(b)
			var n atomic.Int64
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			begin := time.Now()
			for w := range writers {
				wg.Go(func() {
					stream := fmt.Sprintf("job-%d", w)
					for i := 0; n.Add(1) <= int64(b.N); i++ {
						if _, err := c.Append(b.Context(), stream, domain.ExpectedRevision(i-1), []domain.NewEvent{note("x")}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "appends/s")
		})
	}
}

// BenchmarkLoad reads a stream of 1,000 events; ns/op is one event.
func BenchmarkLoad(b *testing.B) {
	c := benchClient(b)
	events := make([]domain.NewEvent, 1000)
	for i := range events {
		events[i] = note("x")
	}
	_, err := c.Append(b.Context(), "job-1", domain.NoStream, events)
	must.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; {
		must.NoError(b, c.Load(b.Context(), "job-1", 0, func(domain.Recorded) error {
			n++
			return nil
		}))
	}
}

// BenchmarkLoadTail reads the open book of a ledger of 10,000 events, whose close lies some events
// back, as the first command after a start does.
func BenchmarkLoadTail(b *testing.B) {
	c := benchClient(b)
	for _, open := range []int{10, 250, 500, 1000} {
		stream := fmt.Sprintf("job-%d", open)
		events := make([]domain.NewEvent, 10_000)
		for i := range events {
			events[i] = note("x")
		}
		events[len(events)-open].Event = &job.Heartbeat{Token: 1}
		for at := 0; at < len(events); at += 1000 {
			_, err := c.Append(b.Context(), stream, domain.ExpectedRevision(at-1), events[at:at+1000])
			must.NoError(b, err)
		}
		b.Run(strconv.Itoa(open), func(b *testing.B) {
			for b.Loop() {
				tail, ok, err := c.LoadTail(b.Context(), stream, "job.heartbeat", len(events))
				if err != nil || !ok || len(tail) != open {
					b.Fatalf("%d events, %t, %v", len(tail), ok, err)
				}
			}
		})
	}
}

func benchClient(b *testing.B) *Client {
	b.Helper()
	n := &testNode{dsn: pgtest.NewDSN(b), socket: newSocket(b)}
	var err error
	if n.node, err = node.Start(b.Context(), node.Config{DSN: n.dsn, Socket: n.socket, Log: quietLog()}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(n.stop)
	c, err := OpenSocket(n.socket, Patience, quietLog())
	must.NoError(b, err)
	b.Cleanup(func() { _ = c.Close() })
	return c
}
