package store

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the writer's own numbers.
type metrics struct {
	events        prometheus.Counter
	groupEvents   prometheus.Histogram
	commitSeconds prometheus.Histogram
	failures      prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer, head func() int64) *metrics {
	registered := promauto.With(registerer)
	registered.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "humanqa_eventlog_head_position", Help: "Position of the last committed event.",
	}, func() float64 { return float64(head()) })
	return &metrics{
		events: registered.NewCounter(prometheus.CounterOpts{
			Name: "humanqa_eventlog_events_total", Help: "Events committed by this process.",
		}),
		groupEvents: registered.NewHistogram(prometheus.HistogramOpts{
			Name: "humanqa_eventlog_group_events", Help: "Events per committed group.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 13),
		}),
		commitSeconds: registered.NewHistogram(prometheus.HistogramOpts{
			Name: "humanqa_eventlog_commit_seconds", Help: "Time to commit a group.",
			Buckets: prometheus.ExponentialBuckets(0.0002, 2, 16),
		}),
		failures: registered.NewCounter(prometheus.CounterOpts{
			Name: "humanqa_eventlog_failed_groups_total", Help: "Groups whose outcome is unknown.",
		}),
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
