package pgdev

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

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

// writeConfig writes the server's two files. Settings that depend on the run (port,
// listen address) are given on the command line.
func (h Home) writeConfig(socketDir string, open bool) error {
	settings := [][2]string{
		{"data_directory", h.Data()},
		{"hba_file", h.hbaFile()},
		{"unix_socket_directories", socketDir},
		{"unix_socket_permissions", "0700"},
		{"password_encryption", "scram-sha-256"},

		{"max_connections", "200"},
		{"shared_buffers", "128MB"},
		{"wal_compression", "on"},
		{"checkpoint_timeout", "15min"},
		{"random_page_cost", "1.1"}, // solid state disks
		{"jit", "off"},              // costs more than our short queries
		{"timezone", "UTC"},
		{"log_timezone", "UTC"},
		{"lc_messages", "C"}, // reason reads FATAL lines

		// Seven files at most: each weekday overwrites the last one. Neither
		// statements nor row values reach the log; both may hold secrets.
		{"logging_collector", "on"},
		{"log_directory", h.logs()},
		{"log_filename", "postgres-%a.log"},
		{"log_rotation_age", "1d"},
		{"log_rotation_size", "0"},
		{"log_truncate_on_rotation", "on"},
		{"log_line_prefix", "%m [%p] "},
		{"log_error_verbosity", "terse"},
		{"log_min_error_statement", "panic"},
		{"log_checkpoints", "off"},
	}
	if kind := h.sharedMemory(); kind != "" {
		settings = append(settings, [2]string{"dynamic_shared_memory_type", kind})
	}
	if open {
		settings = append(settings, [][2]string{
			{"ssl", "on"},
			{"ssl_cert_file", h.certificateFile()},
			{"ssl_key_file", h.keyFile()},
			{"ssl_min_protocol_version", "TLSv1.2"},
		}...)
	}
	var conf strings.Builder
	conf.WriteString("# Written at every start. Local changes: ALTER SYSTEM.\n")
	for _, kv := range settings {
		fmt.Fprintf(&conf, "%s = '%s'\n", kv[0], strings.ReplaceAll(kv[1], "'", "''"))
	}
	hba := `# Written at every start.
# The socket directory is 0700: who reaches it is the server's user or root.
local all all trust
host  all all 127.0.0.1/32 scram-sha-256
`
	if open {
		hba += "hostssl " + Database + " +" + Analysts + " all scram-sha-256\n"
	}
	// Readable by the server's user; the password is not in here.
	if err := wholefile.Write(h.configFile(), []byte(conf.String()), 0o644); err != nil {
		return fmt.Errorf("write the database configuration: %w", err)
	}
	if err := wholefile.Write(h.hbaFile(), []byte(hba), 0o644); err != nil {
		return fmt.Errorf("write the database access rules: %w", err)
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
