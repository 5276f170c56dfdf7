package main

import (
	"github.com/alecthomas/kong"

	"humanqa/internal/buildinfo"
)

type versionCmd struct{}

func (versionCmd) Run(a *app) error { return a.printBuild() }

func (a *app) printBuild() error {
	b := buildinfo.This()
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
