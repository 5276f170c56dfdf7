package main

import (
	"fmt"

	"humanqa/internal/buildinfo"
)

type versionCmd struct{}

func (versionCmd) Run(a *app) error { return a.print(buildinfo.This(), "%s", build()) }

// build is the build in a line.
func build() string {
	b := buildinfo.This()
	return fmt.Sprintf("humanqa %s, commit %s, %s", b.Version, b.Commit, b.GoVersion)
}
