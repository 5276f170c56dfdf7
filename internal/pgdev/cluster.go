package pgdev

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/template"

	"humanqa/internal/tied"
	"humanqa/internal/wholefile"
)

// InitdbOptions shape a new cluster.
var InitdbOptions = []string{
	"--username=" + User,
	"--encoding=UTF8",
	"--locale=C",
	"--auth=trust", // replaced by our pg_hba.conf before the first start
	"--no-instructions",
}

// ensureCluster makes the cluster once, by initdb. It works beside the final place and
// renames: a crash in the middle leaves a directory that the next start removes.
func (h Home) ensureCluster(ctx context.Context, bin string) error {
	if err := h.ownDir(h.logs()); err != nil {
		return fmt.Errorf("create the database's log directory: %w", err)
	}
	if h.clusterVersion() != "" {
		return nil
	}
	fresh := h.Data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove a half-made cluster: %w", err)
	}
	if err := h.ownDir(fresh); err != nil {
		return fmt.Errorf("create the cluster directory: %w", err)
	}
	if err := h.initdb(ctx, bin, fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, h.Data()); err != nil {
		return fmt.Errorf("put the new cluster in its place: %w", err)
	}
	return nil
}

func (h Home) initdb(ctx context.Context, bin, fresh string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), append([]string{"-D", fresh}, InitdbOptions...)...)
	cmd.Dir = h.dir
	cmd.Env = cleanEnv()
	cmd.SysProcAttr = h.owner.procAttr()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := tied.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("start initdb: %w", err)
	}
	<-p.Exited()
	if err := p.Err(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, lastLine(out.Bytes()))
	}
	return nil
}

//go:embed files
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"quoted": func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" },
}).ParseFS(files, "files/*"))

// writeFilled writes the template with the name of the file, unless the file is like that.
func writeFilled(path string, is map[string]any, mode fs.FileMode) error {
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, filepath.Base(path), is); err != nil {
		return err
	}
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, text.Bytes()) {
		return nil
	}
	return wholefile.Write(path, text.Bytes(), mode)
}

// writeConfig writes the server's two files. Settings that depend on the run (port,
// listen address) are given on the command line.
func (h Home) writeConfig(socketDir string, open bool) error {
	is := map[string]any{
		"Data": h.Data(), "HBA": h.hbaFile(), "SocketDir": socketDir, "Logs": h.logs(), "SharedMemory": h.sharedMemory(),
		"Open": open, "Certificate": h.certificateFile(), "Key": h.keyFile(), "Database": Database, "Analysts": Analysts,
	}
	for _, path := range []string{h.configFile(), h.hbaFile()} {
		// Readable by the server's user; the password is not in here.
		if err := writeFilled(path, is, 0o644); err != nil {
			return fmt.Errorf("write the database configuration: %w", err)
		}
	}
	return nil
}

// sharedMemory is the type of shared memory that initdb found to work on this machine.
// Without a /dev/shm that the server's user may write to, as in a bare chroot or
// container, it is not the default. Empty: initdb did not say.
func (h Home) sharedMemory() string {
	conf, err := os.ReadFile(filepath.Join(h.Data(), "postgresql.conf"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(conf)) {
		if value, ok := strings.CutPrefix(line, "dynamic_shared_memory_type = "); ok {
			value, _, _ = strings.Cut(value, "#")
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// cleanEnv is our environment without variables that would change the server or initdb.
func cleanEnv() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "PG") || strings.HasPrefix(name, "LC_") ||
			strings.HasPrefix(name, "HUMANQA_") || name == "LANG" || name == "TZ"
	})
	return append(env, "LC_ALL=C", "TZ=UTC")
}

// reason is the cause of the server's end, from the last line of its own log.
func (s *Server) reason() string {
	early, err := os.ReadFile(s.logFile())
	if err != nil {
		return "no output"
	}
	var later []byte
	logs, err := filepath.Glob(filepath.Join(s.home.logs(), "*.log"))
	if err == nil && len(logs) > 0 {
		newest := slices.MaxFunc(logs, func(a, b string) int { return modTime(a).Compare(modTime(b)) })
		if !modTime(newest).Before(modTime(s.logFile())) {
			later, _ = os.ReadFile(newest) // an unreadable log counts as empty
		}
	}
	return cmp.Or(lastFatal(early), lastFatal(later), lastLine(early), "no output")
}

// lastFatal is the last line at which a server gave up, without its time stamp.
func lastFatal(log []byte) string {
	lines := strings.Split(string(log), "\n")
	for _, line := range slices.Backward(lines) {
		for _, level := range []string{"FATAL:", "PANIC:"} {
			if _, text, ok := strings.Cut(line, level); ok {
				return strings.TrimSpace(text)
			}
		}
	}
	return ""
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
