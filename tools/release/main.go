// Command release makes what is published of a version, from a clean checkout of one commit:
//
//	humanqa_VERSION_OS_ARCH.tar.gz   the server, the program that it runs, and the client, with licences
//	humanqa_VERSION_ARCH.deb, .rpm   the server and that program, with its systemd unit and its user
//	hqa_VERSION_ARCH.deb, .rpm       the client
//	humanqa_VERSION_ARCH.oci.tar     an image of the server, for docker load or podman load
//	humanqa-VERSION.tgz, .whl        the clients for npm and Python
//	*.cdx.json                       an SBOM a binary (CycloneDX), out of its build information
//	checksums.txt                    SHA-256 of all of them
//
// Two runs on one commit, in any two folders, give the same bytes: no path and no time
// but the commit's is in them.
//
//	go run . [-out DIR] [-version V] [-platforms linux/amd64,…]
package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// programs are what a release has binaries of.
var programs = []string{"humanqa", "humanqa-parquet", "hqa"}

func main() {
	out := flag.String("out", "dist", "the folder to write to; it is emptied")
	version := flag.String("version", "", "without it the newest tag, and the commit behind it")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "what to build for")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := release(ctx, *out, *version, strings.Split(*platforms, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// build is a release under way.
type build struct {
	root    string // of the repository
	out     string
	version string
	head    string    // the commit's hash
	commit  time.Time // every time that a file bears
}

// platform is what a binary runs on.
type platform struct{ os, arch string }

func release(ctx context.Context, out, version string, names []string) error {
	root, err := command(ctx, ".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if dirty, err := command(ctx, root, "git", "status", "--porcelain", "--untracked-files=no"); err != nil || dirty != "" {
		return errors.Join(err, errors.New("commit first: a release is made of a commit"))
	}
	logged, err := command(ctx, root, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	head, seconds, _ := strings.Cut(logged, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	if version == "" {
		if version, err = describe(ctx, root, time.Unix(at, 0).UTC()); err != nil {
			return err
		}
	}
	if err := keepsPatch(ctx, root, version); err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	b := &build{root: root, out: out, version: strings.TrimPrefix(version, "v"), head: head, commit: time.Unix(at, 0).UTC()}
	for _, name := range names {
		system, arch, found := strings.Cut(name, "/")
		if !found {
			return fmt.Errorf("%q is no platform such as linux/amd64", name)
		}
		if err := b.platform(ctx, platform{system, arch}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if _, err := command(ctx, root, "scripts/clients.sh", out, b.version); err != nil {
		return err
	}
	return b.checksums()
}

// describe is the version of a commit: its tag, or a version before the next one.
func describe(ctx context.Context, root string, at time.Time) (string, error) {
	if tag, err := command(ctx, root, "git", "describe", "--tags", "--exact-match"); err == nil {
		return tag, nil
	}
	hash, err := command(ctx, root, "git", "rev-parse", "--short=12", "HEAD")
	return "0.0.0~" + at.Format("20060102150405") + "." + hash, err
}

var patchVersion = regexp.MustCompile(`^v?([0-9]+\.[0-9]+)\.[1-9][0-9]*$`)

// keepsPatch refuses a patch that its minor version's data would not survive the way back
// from: one with a migration, another event, or another version of a read model (docs/upgrades.md).
func keepsPatch(ctx context.Context, root, version string) error {
	minor := patchVersion.FindStringSubmatch(version)
	if minor == nil {
		return nil
	}
	tag := "v" + minor[1] + ".0"
	for _, args := range [][]string{
		{"migrations/*.sql"}, {"eventstore/testdata"}, {"-GVersion\\(\\) int", "--", "projections"},
	} {
		if len(args) == 1 {
			args = []string{"--", args[0]}
		}
		changed, err := command(ctx, root, "git", append([]string{"diff", "--name-only", tag, "HEAD"}, args...)...)
		if err != nil {
			return fmt.Errorf("compare with %s, which %s is a patch of: %w", tag, version, err)
		}
		if changed != "" {
			return fmt.Errorf("%s changes what a patch must not, since %s: %s: make it a minor version", version, tag,
				strings.Join(strings.Fields(changed), ", "))
		}
	}
	return nil
}

func (b *build) platform(ctx context.Context, p platform) error {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	for _, program := range programs {
		file := filepath.Join(work, program)
		fmt.Println("building", program, "for", p.os+"/"+p.arch)
		args := []string{"build", "-buildvcs=true", "-ldflags=-s -w -buildid="}
		if program == "hqa" {
			args = append(args, "-gcflags=all=-l") // as make build does
		}
		cmd := exec.CommandContext(ctx, "go", append(args, "-o", file, "./cmd/"+program)...)
		cmd.Dir, cmd.Stderr = b.root, os.Stderr
		// An empty GOFLAGS would leave this machine's go env in force.
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOOS="+p.os, "GOARCH="+p.arch)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build %s: %w", program, err)
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return err
		}
		if err := namesCommit(info, b.head); err != nil {
			return err
		}
		if err := b.sbom(info, program, p); err != nil {
			return err
		}
	}
	licences, err := b.licences(ctx, work)
	if err != nil {
		return err
	}
	if err := b.archive(work, licences, p); err != nil {
		return err
	}
	if p.os != "linux" {
		return nil
	}
	for _, format := range []string{"deb", "rpm"} {
		if err := b.packages(work, licences, p, format); err != nil {
			return fmt.Errorf("%s: %w", format, err)
		}
	}
	return b.image(work, licences, p)
}

// namesCommit refuses a binary that cannot say what it was made of: humanqa version, the metrics
// and every report of a fault need it. Go reads no commit in a worktree of git.
func namesCommit(info *debug.BuildInfo, head string) error {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && s.Value == head {
			return nil
		}
	}
	return fmt.Errorf("the binary does not name its commit %s: release from a clone, not from a worktree of git", head)
}

func (b *build) path(format string, args ...any) string {
	return filepath.Join(b.out, fmt.Sprintf(format, args...))
}

// vendored are the licences of the files that the binaries contain besides modules.
var vendored = []string{"httpapi/ui/assets/vendor/*/LICENSE", "internal/inter/LICENSE"}

// licences writes the licences of all modules and files in the binaries to one file.
func (b *build) licences(ctx context.Context, work string) (file string, err error) {
	modules := map[string]string{} // versions
	for _, program := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(work, program))
		if err != nil {
			return "", err
		}
		for _, m := range info.Deps {
			modules[m.Path] = m.Version
		}
	}
	var text strings.Builder
	for _, name := range sortedKeys(modules) {
		raw, err := command(ctx, b.root, "go", "mod", "download", "-json", name+"@"+modules[name])
		if err != nil {
			return "", err
		}
		var where struct{ Dir string }
		if err := json.Unmarshal([]byte(raw), &where); err != nil {
			return "", err
		}
		found := false
		for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "NOTICE*", "licen[cs]e*"} {
			files, err := filepath.Glob(filepath.Join(where.Dir, pattern))
			if err != nil {
				return "", err
			}
			for _, f := range files {
				body, err := os.ReadFile(f)
				if err != nil {
					continue // a folder of that name
				}
				found = true
				fmt.Fprintf(&text, "==== %s %s: %s\n\n%s\n\n", name, modules[name], filepath.Base(f), body)
			}
		}
		if !found {
			return "", fmt.Errorf("%s has no licence", name)
		}
	}
	for _, pattern := range vendored {
		files, err := filepath.Glob(filepath.Join(b.root, pattern))
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("no licence is at %s: %w", pattern, err)
		}
		for _, f := range files {
			body, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&text, "==== %s: %s\n\n%s\n\n", filepath.Base(filepath.Dir(f)), filepath.Base(f), body)
		}
	}
	file = filepath.Join(work, "THIRD_PARTY_LICENSES")
	return file, os.WriteFile(file, []byte(text.String()), 0o600)
}

// checksums writes the sums of all files.
func (b *build) checksums() error {
	files, err := os.ReadDir(b.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, f := range files {
		body, err := os.ReadFile(filepath.Join(b.out, f.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		fmt.Fprintf(&text, "%s  %s\n", hex.EncodeToString(sum[:]), f.Name())
	}
	fmt.Print(text.String())
	return os.WriteFile(filepath.Join(b.out, "checksums.txt"), []byte(text.String()), 0o644)
}

// command runs a program and gives its output without the last line's end.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func sortedKeys(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// debianArch is the name of an architecture in .deb and .rpm files' names.
func (p platform) String() string { return p.os + "_" + p.arch }

// goVersion is what the binaries are made by.
func goVersion() string { return runtime.Version() }
