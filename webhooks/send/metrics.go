package send

import (
	"github.com/prometheus/client_golang/prometheus"

	"humanqa/webhooks/queue"
)

// metrics counts the attempts of this process.
type metrics struct {
	outcomes *prometheus.CounterVec
	took     prometheus.Histogram
}

func newMetrics() metrics {
	m := metrics{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "humanqa_webhook_attempts_total",
			Help: "Attempts to deliver, by what they led to: delivered, retry, exhausted (the webhook is disabled), postponed, undelivered (a test event).",
		}, []string{"outcome"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "humanqa_webhook_attempt_seconds",
			Help:    "How long an attempt took.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
	}
	for _, v := range []queue.Result{queue.Delivered, queue.Retry, queue.Exhausted, queue.Postponed, queue.Undelivered} {
		m.outcomes.WithLabelValues(string(v))
	}
	return m
}

func (m metrics) countOutcomes(done []queue.Outcome) {
	for _, o := range done {
		m.outcomes.WithLabelValues(string(o.Result)).Inc()
		if !o.Unsent {
			m.took.Observe(o.Took.Seconds())
		}
	}
}
