// Package buildinfo names the source and the toolchain of a binary.
package buildinfo

import "runtime/debug"

// Info holds the facts that a binary knows of itself.
type Info struct {
	Version   string `json:"version"`
	Commit    string `json:"commit"` // +changes: of a tree that had more than the commit
	GoVersion string `json:"goVersion"`
}

// unknown stands for facts that the toolchain does not know, such as the commit of a tree
// without git.
const unknown = "unknown"

// This asks the binary itself.
func This() Info {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Info{unknown, unknown, unknown}
	}
	b := Info{Version: info.Main.Version, Commit: unknown, GoVersion: info.GoVersion}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = unknown
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
