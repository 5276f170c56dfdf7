package humanqa_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// A machine is a clone of scripts/install-go.sh and its apt.sh, and all programs in its PATH.
// It has no Go and no package manager at first.
type machine struct {
	t        *testing.T
	clone    string
	bin      string
	archives string // the address of the archives
}

const archive = "go1.99.0.linux-amd64.tar.gz"

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, clone: t.TempDir(), bin: t.TempDir()}
	for _, name := range []string{"go.mod", "scripts/install-go.sh", "scripts/apt.sh"} {
		b, err := os.ReadFile(name)
		must.NoError(t, err)
		m.file(filepath.Join(m.clone, name), string(b))
	}
	programs := []string{"awk", "bash", "curl", "dirname", "env", "grep", "gzip", "mkdir", "mktemp", "mv", "rm", "sleep", "tar"}
	if _, err := exec.LookPath("sha256sum"); err == nil {
		programs = append(programs, "sha256sum")
	} else {
		programs = append(programs, "shasum")
	}
	for _, name := range programs {
		path, err := exec.LookPath(name)
		must.NoError(t, err) // make test installs curl
		must.NoError(t, os.Symlink(path, filepath.Join(m.bin, name)))
	}
	m.program("id", "echo 0")
	m.program("uname", "echo Linux x86_64")

	packed := pack(t)
	m.file(filepath.Join(m.clone, "scripts/go.sha256"), fmt.Sprintf("%x  %s\n", sha256.Sum256(packed), archive))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/"+archive {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(packed)
	}))
	t.Cleanup(server.Close)
	m.archives = server.URL
	return m
}

// pack makes an archive of a Go 1.99.
func pack(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	files := tar.NewWriter(compressed)
	program := "#!/bin/sh\necho go1.99.0\n"
	must.NoError(t, files.WriteHeader(&tar.Header{Name: "go/bin/go", Mode: 0o755, Size: int64(len(program))}))
	_, err := files.Write([]byte(program))
	must.NoError(t, err)
	must.NoError(t, files.Close())
	must.NoError(t, compressed.Close())
	return packed.Bytes()
}

func (m *machine) file(path, text string) {
	m.t.Helper()
	must.NoError(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.NoError(m.t, os.WriteFile(path, []byte(text), 0o755))
}

func (m *machine) program(name, script string) {
	m.t.Helper()
	m.file(filepath.Join(m.bin, name), "#!/bin/sh\n"+script+"\n")
}

// apt knows the package golang-go in one version.
func (m *machine) apt(version string) {
	m.t.Helper()
	m.program("apt-cache", "echo '  Candidate: 2:"+version+"~1'")
	m.program("apt-get", `case "$*" in *"install golang-go") printf '#!/bin/sh\necho go`+version+`\n' >`+m.bin+`/go && /bin/chmod +x `+m.bin+`/go ;; esac`)
}

// install runs the script, and tells the version of the go that the Makefile then finds.
func (m *machine) install(named ...string) (said, version string, code int) {
	m.t.Helper()
	path := "PATH=" + m.clone + "/.tools/go/bin:" + m.bin
	script := exec.CommandContext(m.t.Context(), "bash", append([]string{m.clone + "/scripts/install-go.sh"}, named...)...)
	script.Env = []string{path, "GO_ARCHIVES=" + m.archives}
	out, _ := script.CombinedOutput() // its exit code says what matters of the error
	find := exec.CommandContext(m.t.Context(), "env", path, "go", "env", "GOVERSION")
	found, _ := find.Output()
	return string(out), strings.TrimSpace(string(found)), script.ProcessState.ExitCode()
}

const how = ": install Go 1.26 from https://go.dev/dl/, or name it: make GO=/path/to/go\n"

func TestAMachineWithoutGoGetsOneOrASentence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		with    func(m *machine)
		named   []string
		said    string
		version string
		code    int
	}{
		"a Go that is new enough is used as it is": {
			with:    func(m *machine) { m.program("go", "echo go1.21.0"); m.apt("1.24") },
			version: "go1.21.0",
		},
		"apt has one that is new enough": {
			with:    func(m *machine) { m.apt("1.24") },
			said:    "installing golang-go 1.24 by apt …\n",
			version: "go1.24",
		},
		"apt has an old one": {
			with:    func(m *machine) { m.apt("1.19") },
			said:    "fetching " + archive + " into .tools …\n",
			version: "go1.99.0",
		},
		"Homebrew has one": {
			with: func(m *machine) {
				m.program("brew", `printf '#!/bin/sh\necho go1.26.1\n' >`+m.bin+`/go && /bin/chmod +x `+m.bin+`/go`)
			},
			said:    "installing go by Homebrew …\n",
			version: "go1.26.1",
		},
		"the archive comes before an old Go": {
			with:    func(m *machine) { m.program("go", "echo go1.20.14") },
			said:    "fetching " + archive + " into .tools …\n",
			version: "go1.99.0",
		},
		"a named Go is only checked": {
			with:  func(m *machine) { m.apt("1.24") },
			named: []string{"/nowhere/go"},
			said:  "install-go: /nowhere/go is no Go from 1.21 on" + how,
			code:  1,
		},
		"an archive with another checksum": {
			with: func(m *machine) {
				m.file(filepath.Join(m.clone, "scripts/go.sha256"), strings.Repeat("0", 64)+"  "+archive+"\n")
			},
			said: "fetching " + archive + " into .tools …\n" +
				"install-go: ADDRESS/" + archive + " is not the archive that scripts/go.sha256 names" + how,
			code: 1,
		},
		"no archive at the address": {
			with: func(m *machine) { m.archives += "/nowhere" },
			said: "fetching " + archive + " into .tools …\n" +
				"install-go: there is no Go from 1.21 on, and ADDRESS/" + archive + " cannot be fetched" +
				" (curl: (22) The requested URL returned error: 404)" + how,
			code: 1,
		},
		"a system without an archive": {
			with: func(m *machine) { m.program("uname", "echo Plan9 mips") },
			said: "install-go: there is no Go from 1.21 on, and no archive of it for Plan9 mips" + how,
			code: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			c.with(m)
			said, version, code := m.install(c.named...)
			if want := strings.ReplaceAll(c.said, "ADDRESS", m.archives); said != want || version != c.version || code != c.code {
				t.Errorf("%d, %q:\n%swant %d, %q:\n%s", code, version, said, c.code, c.version, want)
			}
			if left, _ := filepath.Glob(m.clone + "/.tools/go.*"); left != nil {
				t.Errorf("it leaves %v", left)
			}
			if said, _, _ := m.install(); c.code == 0 && said != "" {
				t.Errorf("a second run says %q", said)
			}
		})
	}
}

func TestEverySystemHasItsArchiveOfGo(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	pins, err := os.ReadFile("scripts/go.sha256")
	must.NoError(t, err)
	m.file(filepath.Join(m.clone, "scripts/go.sha256"), string(pins))
	for system, archive := range map[string]string{
		"Linux x86_64": "linux-amd64", "Linux aarch64": "linux-arm64", "Darwin x86_64": "darwin-amd64", "Darwin arm64": "darwin-arm64",
	} {
		m.program("uname", "echo "+system)
		said, _, code := m.install()
		if code != 1 || !strings.HasPrefix(said, "fetching go1.") || !strings.Contains(said, "."+archive+".tar.gz into .tools …\n") {
			t.Errorf("%s: %d %q", system, code, said)
		}
	}
}

// Two set-ups at once is what a machine of CI does. apt-get update says at once that its lists
// are locked, and the second went on without what it had to install.
func TestASetUpWaitsForAnothersLists(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.apt("1.24")
	as := m.bin + "/apt"
	must.NoError(t, os.Rename(m.bin+"/apt-get", as))
	m.program("apt-get", `case "$*" in
*update) /bin/mkdir `+m.clone+`/asked 2>/dev/null && echo "E: Could not get lock /var/lib/apt/lists/lock." >&2 && exit 100 ;;
esac
exec `+as+` "$@"`)
	if said, version, code := m.install(); version != "go1.24" {
		t.Errorf("%d, %q: %s", code, version, said)
	}
}
