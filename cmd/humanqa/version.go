package main

import (
	"runtime/debug"

	"github.com/alecthomas/kong"
	"github.com/prometheus/client_golang/prometheus"
)

// build is what this binary was made of.
type build struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"` // +changes: of a tree that had more than the commit
	GoVersion string `json:"goVersion"`
}

// unknownBuild stands for what the toolchain could not find out, such as the
// commit of a tree without git.
const unknownBuild = "unknown"

func thisBuild() build {
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

type versionCmd struct{}

func (versionCmd) Run(a *app) error { return a.printBuild() }

func (a *app) printBuild() error {
	b := thisBuild()
	return a.print(b, "humanqa %s, commit %s, %s", b.Version, b.Commit, b.GoVersion)
}

// versionFlag is humanqa --version, which needs no command.
type versionFlag bool

// BeforeReset is called by kong as soon as the flag is seen.
func (versionFlag) BeforeReset(k *kong.Kong) error {
	if err := (&app{out: k.Stdout}).printBuild(); err != nil {
		return err
	}
	k.Exit(exitDone)
	return nil
}
