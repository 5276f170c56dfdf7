package node

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the numbers of the node's server. Without a registerer they are counted
// all the same, and not shown.
type metrics struct {
	registerer    prometheus.Registerer
	subscriptions prometheus.Gauge
	behind        prometheus.Collector
}

// newMetrics is told how to find the largest lag of a subscription.
func newMetrics(registerer prometheus.Registerer, furthestBehind func() float64) (*metrics, error) {
	m := &metrics{
		subscriptions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "humanqa_eventlog_subscriptions", Help: "Open subscriptions.",
		}),
		behind: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "humanqa_eventlog_subscription_lag", Help: "Events behind the open subscription that is furthest behind.",
		}, furthestBehind),
	}
	if registerer == nil {
		return m, nil
	}
	for i, c := range []prometheus.Collector{m.subscriptions, m.behind} {
		if err := registerer.Register(c); err != nil {
			if i > 0 {
				registerer.Unregister(m.subscriptions)
			}
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	m.registerer = registerer
	return m, nil
}

func (m *metrics) unregister() {
	if m != nil && m.registerer != nil {
		m.registerer.Unregister(m.subscriptions)
		m.registerer.Unregister(m.behind)
	}
}

// countSubscription counts a subscription until the returned function is called.
func (m *metrics) countSubscription() func() {
	m.subscriptions.Inc()
	return m.subscriptions.Dec
}
