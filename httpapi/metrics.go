package httpapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are labelled by route pattern, never by path: paths hold ids.
type metrics struct {
	duration *prometheus.HistogramVec
	open     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "humanqa_http_request_duration_seconds",
			Help:    "Time from a request's headers to its answer's last byte.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route", "status"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "humanqa_http_requests_in_flight",
			Help: "Requests that have no answer yet.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.duration, m.open)
	}
	return m
}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	m.duration.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}
