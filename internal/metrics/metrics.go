// Package metrics tells numbers that are looked up at each scrape.
package metrics

import "github.com/prometheus/client_golang/prometheus"

// Found is embedded by a collector with the numbers that a scrape finds: it promises none.
type Found struct{}

// Describe implements prometheus.Collector.
func (Found) Describe(chan<- *prometheus.Desc) {}

// Func is a collector with the numbers that a function finds at each scrape.
type Func func(Gauge)

// Describe implements prometheus.Collector.
func (Func) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (find Func) Collect(to chan<- prometheus.Metric) { find(Gauges(to)) }

// Gauge sends a number. A label has a name and a value.
type Gauge func(name, help string, value float64, label ...string)

// Gauges sends numbers to a scrape.
func Gauges(to chan<- prometheus.Metric) Gauge {
	return func(name, help string, value float64, label ...string) {
		labels := prometheus.Labels{}
		if len(label) > 0 {
			labels[label[0]] = label[1]
		}
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), prometheus.GaugeValue, value)
	}
}
