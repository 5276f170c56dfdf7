// Package gauges reads what a collector of metrics gives.
package gauges

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/internal/testing/must"
)

// Of gives the first value of each gauge by its name.
func Of(t testing.TB, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	must.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	return got
}
