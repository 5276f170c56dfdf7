package service

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// build names the source and the toolchain of this binary.
type build struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"` // +changes: of a tree that had more than the commit
	GoVersion string `json:"goVersion"`
}

// unknownBuild stands for facts that the toolchain does not know, such as the
// commit of a tree without git.
const unknownBuild = "unknown"

// ThisBuild asks the binary itself.
func ThisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{unknownBuild, unknownBuild, unknownBuild}
	}
	b := build{Version: info.Main.Version, Commit: unknownBuild, GoVersion: info.GoVersion}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = unknownBuild
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			b.Commit += "+changes"
		}
	}
	return b
}

// metric is 1, and tells the build by its labels.
func (b build) metric() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "humanqa_build_info", Help: "The version, the commit and the Go that made this binary.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "goversion": b.GoVersion},
	}, func() float64 { return 1 })
}
