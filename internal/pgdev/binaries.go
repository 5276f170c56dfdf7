package pgdev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoBinaries says that PostgreSQL's server programs are not installed.
var ErrNoBinaries = errors.New(
	"no PostgreSQL server binaries found: install them (the package postgresql; in a checkout make postgres), or set HUMANQA_DATABASE_URL")

// packaged is where distributions keep the server programs, out of the PATH.
var packaged = []string{
	"/usr/lib/postgresql/*/bin",                      // Debian, Ubuntu
	"/usr/pgsql-*/bin",                               // the PostgreSQL project's RPMs
	"/opt/homebrew/opt/postgresql*/bin",              // Homebrew on Apple silicon
	"/usr/local/opt/postgresql*/bin",                 // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin", // Homebrew on Linux
}

// findBinaries is the directory of the server programs. A cluster can only be
// opened by the major version that made it; for a new one ("") PATH wins, then
// pg_config, then the newest packaged version.
func findBinaries(ctx context.Context, clusterMajor string) (string, error) {
	var found []string
	for _, dir := range candidates(ctx) {
		if !executable(filepath.Join(dir, "postgres")) || !executable(filepath.Join(dir, "initdb")) {
			continue
		}
		if clusterMajor == "" {
			return dir, nil
		}
		major, err := majorOf(ctx, dir)
		if err != nil {
			return "", err
		}
		if major == clusterMajor {
			return dir, nil
		}
		found = append(found, major)
	}
	if len(found) == 0 {
		return "", ErrNoBinaries
	}
	return "", fmt.Errorf("the cluster was made by PostgreSQL %s, found only %s: install version %s or move the data directory away",
		clusterMajor, strings.Join(slices.Compact(found), ", "), clusterMajor)
}

// Installed is the directory of the server programs for a data directory, whose cluster
// need not be there yet. The error says which version is missing.
func Installed(ctx context.Context, dir string) (bin string, err error) {
	return findBinaries(ctx, Home{dir: filepath.Join(dir, linkName)}.clusterVersion())
}

func candidates(ctx context.Context) []string {
	var dirs []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			path = resolved // initdb may be linked elsewhere, or not at all
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range packaged {
		matches, err := filepath.Glob(pattern)
		if err != nil {
			continue // no constant pattern is malformed
		}
		slices.SortFunc(matches, func(a, b string) int { return cmp.Compare(pathVersion(b), pathVersion(a)) })
		dirs = append(dirs, matches...)
	}
	return dirs
}

// pathVersion is the number in /usr/lib/postgresql/17/bin or postgresql@17.
func pathVersion(bin string) int {
	name := filepath.Base(filepath.Dir(bin))
	n, err := strconv.Atoi(name[strings.LastIndexAny(name, "-@")+1:])
	if err != nil {
		return 0
	}
	return n
}

// majorOf is the number by which a cluster knows the programs that open it. It asks
// "postgres --version", for what follows "postgres (PostgreSQL)": "15.4 (Debian …)".
func majorOf(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s/postgres for its version: %w", dir, err)
	}
	_, version, _ := strings.Cut(string(out), ") ")
	return version[:len(version)-len(strings.TrimLeft(version, "0123456789"))], nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
