package store

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the writer's own numbers. Without a registerer they are counted
// all the same, and not shown.
type metrics struct {
	registerer    prometheus.Registerer
	registered    []prometheus.Collector
	events        prometheus.Counter
	groupEvents   prometheus.Histogram
	commitSeconds prometheus.Histogram
	failures      prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer, head func() int64) (*metrics, error) {
	m := &metrics{
		registerer: registerer,
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "humanqa_eventlog_events_total", Help: "Events committed by this process.",
		}),
		groupEvents: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "humanqa_eventlog_group_events", Help: "Events per committed group.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 13),
		}),
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "humanqa_eventlog_commit_seconds", Help: "Time to commit a group.",
			Buckets: prometheus.ExponentialBuckets(0.0002, 2, 16),
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "humanqa_eventlog_failed_groups_total", Help: "Groups whose outcome is unknown.",
		}),
	}
	if registerer == nil {
		return m, nil
	}
	position := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "humanqa_eventlog_head_position", Help: "Position of the last committed event.",
	}, func() float64 { return float64(head()) })
	for _, c := range []prometheus.Collector{m.events, m.groupEvents, m.commitSeconds, m.failures, position} {
		if err := registerer.Register(c); err != nil {
			m.unregister()
			return nil, fmt.Errorf("register metrics: %w", err)
		}
		m.registered = append(m.registered, c)
	}
	return m, nil
}

func (m *metrics) unregister() {
	if m == nil {
		return
	}
	for _, c := range m.registered {
		m.registerer.Unregister(c)
	}
}

func (m *metrics) committed(events int, took time.Duration, err error) {
	if err != nil {
		m.failures.Inc()
		return
	}
	m.events.Add(float64(events))
	m.groupEvents.Observe(float64(events))
	m.commitSeconds.Observe(took.Seconds())
}
