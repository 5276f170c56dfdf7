package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// A patch goes back by a start of the older binary, so it leaves all data as it is.
func TestAPatchThatChangesTheSchemaIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		if _, err := command(t.Context(), root, "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(file, content string) {
		t.Helper()
		file = filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-qm", "change")
	}
	git("init", "-q")
	write("projections/jobs/model.go", "func (Model) Version() int { return 7 }\n")
	git("tag", "v0.1.0")
	write("projections/jobs/model.go", "// Version is the rows'.\nfunc (Model) Version() int { return 7 }\n")
	if err := keepsPatch(t.Context(), root, "v0.1.1"); err != nil {
		t.Errorf("a patch of the code alone: %v", err)
	}
	for file, content := range map[string]string{
		"migrations/0099_new.sql": "-- +goose Up", "eventstore/testdata/job.new.json": "{}",
		"projections/jobs/model.go": "func (Model) Version() int { return 8 }\n",
	} {
		write(file, content)
		if err := keepsPatch(t.Context(), root, "0.1.1"); err == nil || !strings.Contains(err.Error(), "make it a minor version") {
			t.Errorf("%s: %v", file, err)
		}
		git("reset", "-q", "--hard", "HEAD~1")
	}
	if err := keepsPatch(t.Context(), root, "v0.2.0"); err != nil {
		t.Errorf("a minor version: %v", err)
	}
	if err := keepsPatch(t.Context(), root, "v0.3.1"); err == nil {
		t.Error("a patch of a version that is not there is made")
	}
}

func TestABinaryThatDoesNotNameItsCommitIsRefused(t *testing.T) {
	t.Parallel()
	named := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "vcs.revision", Value: "abc"}}}
	if err := namesCommit(named, "abc"); err != nil {
		t.Error(err)
	}
	for _, info := range []*debug.BuildInfo{{}, named} {
		if err := namesCommit(info, "def"); err == nil || !strings.Contains(err.Error(), "release from a clone") {
			t.Errorf("%v: %v", info.Settings, err)
		}
	}
}

// Programs in the place of systemd's write down their calls.
func TestAnUpgradeOfThePackageStopsNoService(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][2][]string{
		"deb": {{"upgrade", "0.2.0"}, {"configure", "0.1.0"}}, "rpm": {{"1"}, {"2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			calls := filepath.Join(dir, "calls")
			for _, program := range []string{"systemctl", "getent"} {
				script := "#!/bin/sh\necho " + program + " \"$@\" >>" + calls + "\n"
				if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			said := ""
			for i, file := range []string{"preremove.sh", "postinstall.sh"} {
				script, err := os.ReadFile(filepath.Join("../../deploy/linux", file))
				if err != nil {
					t.Fatal(err)
				}
				text := strings.ReplaceAll(string(script), "/run/systemd/system", dir)
				out, err := command(t.Context(), dir, "env", append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "sh", "-c", text, file}, args[i]...)...)
				if err != nil {
					t.Fatal(err)
				}
				said += out
			}
			called, err := os.ReadFile(calls)
			if err != nil || !strings.Contains(string(called), "systemctl daemon-reload") || regexp.MustCompile(`restart|stop|start|disable`).Match(called) {
				t.Errorf("it called %s, %v", called, err)
			}
			for _, want := range []string{"humanqa backup FILE", "systemctl restart humanqa"} {
				if !strings.Contains(said, want) {
					t.Errorf("it does not name the next step %q: %s", want, said)
				}
			}
		})
	}
}

// An operator without the repository has the programs, the documents, the alerts and the board.
func TestThePackagesBringTheDocuments(t *testing.T) {
	t.Parallel()
	work, out := t.TempDir(), t.TempDir()
	for _, file := range append([]string{"licences"}, programs...) {
		if err := os.WriteFile(filepath.Join(work, file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b := &build{root: root, out: out, version: "0.1.0", commit: time.Unix(1, 0)}
	if err := b.packages(work, filepath.Join(work, "licences"), platform{"linux", "amd64"}, "rpm"); err != nil {
		t.Fatal(err)
	}
	if err := b.packages(work, filepath.Join(work, "licences"), platform{"linux", "amd64"}, "deb"); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("the contents are listed by dpkg-deb")
	}
	list, err := command(t.Context(), out, "dpkg-deb", "--contents", "humanqa_0.1.0_amd64.deb")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"bin/humanqa", "bin/humanqa-parquet", "share/doc/humanqa/alerts.md", "share/doc/humanqa/proofs.md",
		"share/doc/humanqa/prometheus/humanqa.rules.yml", "share/doc/humanqa/grafana/humanqa.json",
	} {
		if !strings.Contains(list, "./usr/"+file+"\n") {
			t.Errorf("%s is not in the package:\n%s", file, list)
		}
	}
}
