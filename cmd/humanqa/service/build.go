package service

import (
	"github.com/prometheus/client_golang/prometheus"

	"humanqa/internal/buildinfo"
)

// buildMetric is 1, and tells the build by its labels.
func buildMetric() prometheus.Collector {
	b := buildinfo.This()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "humanqa_build_info", Help: "The version, the commit and the Go that made this binary.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "goversion": b.GoVersion},
	}, func() float64 { return 1 })
}
