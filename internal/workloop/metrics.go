package workloop

import "github.com/prometheus/client_golang/prometheus"

// The metrics of a loop. The pool is a constant label: so each loop is a
// collector of its own.
type descs struct{ places, busy, stalled, abandoned *prometheus.Desc }

func describe(pool string) descs {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("humanqa_work_"+name, help, nil, prometheus.Labels{"pool": pool})
	}
	return descs{
		places:    desc("places", "How many items the pool does at once."),
		busy:      desc("busy", "Places of the pool that are taken."),
		stalled:   desc("stalled_seconds", "How long nothing has ended by itself in a pool with work under way, or its loop has stood still; 0 within a lease."),
		abandoned: desc("abandoned_total", "Items that went on after their lease had ended."),
	}
}

// Describe implements prometheus.Collector.
func (l *Loop[T, R]) Describe(to chan<- *prometheus.Desc) {
	d := describe(l.Name)
	for _, one := range []*prometheus.Desc{d.places, d.busy, d.stalled, d.abandoned} {
		to <- one
	}
}

// Collect implements prometheus.Collector.
func (l *Loop[T, R]) Collect(to chan<- prometheus.Metric) {
	d := describe(l.Name)
	metric := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64) {
		to <- prometheus.MustNewConstMetric(desc, kind, value)
	}
	metric(d.places, prometheus.GaugeValue, float64(l.Places))
	metric(d.busy, prometheus.GaugeValue, float64(l.stats.busy.Load()))
	metric(d.stalled, prometheus.GaugeValue, l.Stalled().Seconds())
	metric(d.abandoned, prometheus.CounterValue, float64(l.stats.abandoned.Load()))
}
