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
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{subscriptions: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "humanqa_eventlog_subscriptions", Help: "Open subscriptions.",
	})}
	if registerer == nil {
		return m, nil
	}
	if err := registerer.Register(m.subscriptions); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	m.registerer = registerer
	return m, nil
}

func (m *metrics) unregister() {
	if m != nil && m.registerer != nil {
		m.registerer.Unregister(m.subscriptions)
	}
}

// countSubscription counts a subscription until the returned function is called.
func (m *metrics) countSubscription() func() {
	m.subscriptions.Inc()
	return m.subscriptions.Dec
}
