package node

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the numbers of the node and of its store.
type metrics struct {
	own           *prometheus.Registry
	subscriptions prometheus.Gauge
	shown         prometheus.Registerer // nil: the metrics are counted, but not shown
}

// newMetrics makes the metrics. furthestBehind gives the largest lag of a subscription.
func newMetrics(furthestBehind func() float64) *metrics {
	own := prometheus.NewRegistry()
	promauto.With(own).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "humanqa_eventlog_subscription_lag", Help: "Events behind the open subscription that is furthest behind.",
	}, furthestBehind)
	return &metrics{own: own, subscriptions: promauto.With(own).NewGauge(prometheus.GaugeOpts{
		Name: "humanqa_eventlog_subscriptions", Help: "Open subscriptions.",
	})}
}

// show registers the metrics with the registerer, if there is one, until unregister.
func (m *metrics) show(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	if err := registerer.Register(m.own); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	m.shown = registerer
	return nil
}

func (m *metrics) unregister() {
	if m.shown != nil {
		m.shown.Unregister(m.own)
	}
}
