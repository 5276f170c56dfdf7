package workloop

import "github.com/prometheus/client_golang/prometheus"

// Describe implements prometheus.Collector.
func (l *Loop[T, R]) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(l, to) }

// Collect implements prometheus.Collector. The pool is a constant label: so each loop is a
// collector of its own.
func (l *Loop[T, R]) Collect(to chan<- prometheus.Metric) {
	metric := func(name, help string, kind prometheus.ValueType, value float64) {
		desc := prometheus.NewDesc("humanqa_work_"+name, help, nil, prometheus.Labels{"pool": l.Name})
		to <- prometheus.MustNewConstMetric(desc, kind, value)
	}
	metric("places", "How many items the pool does at once.", prometheus.GaugeValue, float64(l.Places))
	metric("busy", "Places of the pool that are taken.", prometheus.GaugeValue, float64(l.stats.busy.Load()))
	metric("stalled_seconds",
		"How long nothing has ended by itself in a pool with work under way, or its loop has stood still; 0 within a lease.",
		prometheus.GaugeValue, l.Stalled().Seconds())
	metric("abandoned_total", "Items that went on after their lease had ended.", prometheus.CounterValue,
		float64(l.stats.abandoned.Load()))
}
