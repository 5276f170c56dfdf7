package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"humanqa/internal/pgdev"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

// network is a bridge of this machine. Each machine of a trial is a network namespace with
// one link to it.
type network struct {
	t      testing.TB
	bridge string
	prefix string // of the addresses
	count  int
}

// newNetwork needs root. The names hold the process's id, so that two trials do not meet.
func newNetwork(t testing.TB) *network {
	t.Helper()
	pid := os.Getpid()
	n := &network{t: t, bridge: fmt.Sprintf("hq%d", pid), prefix: fmt.Sprintf("10.211.%d.", pid%256)}
	n.ip("link", "add", n.bridge, "type", "bridge")
	t.Cleanup(func() { n.ip("link", "delete", n.bridge) })
	n.ip("address", "add", n.prefix+"1/24", "dev", n.bridge)
	n.ip("link", "set", n.bridge, "up")
	return n
}

// ip runs ip(8).
func (n *network) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil { //nolint:noctx // words of this file, and at once
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// machine is a network namespace with one address.
type machine struct {
	*network
	name, address string
}

func (n *network) machine() *machine {
	n.t.Helper()
	n.count++
	m := &machine{n, fmt.Sprintf("%sm%d", n.bridge, n.count), fmt.Sprintf("%s%d", n.prefix, n.count+1)}
	n.ip("netns", "add", m.name)
	n.t.Cleanup(func() { n.ip("netns", "delete", m.name) })
	n.ip("link", "add", m.name, "type", "veth", "peer", "name", "eth0", "netns", m.name)
	n.ip("link", "set", m.name, "master", n.bridge, "up")
	n.ip("-n", m.name, "address", "add", m.address+"/24", "dev", "eth0")
	n.ip("-n", m.name, "link", "set", "eth0", "up")
	n.ip("-n", m.name, "link", "set", "lo", "up")
	return m
}

// plug pulls the machine's link out, or puts it in.
func (m *machine) plug(state string) { m.t.Helper(); m.ip("link", "set", m.name, state) }

// command runs there: ip becomes the program, so its process is the program's.
func (m *machine) command(args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", m.name}, args...)...) //nolint:noctx // the test stops it
}

// on prepares a program on a machine. The service that it starts is asked at the port.
func (m *machine) on(port string, settings ...string) *machineProgram {
	m.t.Helper()
	p := newEmbedded(m.t, append([]string{
		"HUMANQA_ADDR=" + m.address + ":8080", "HUMANQA_ADMIN_ADDR=" + m.address + ":9090",
	}, settings...)...)
	p.addr, p.client = net.JoinHostPort(m.address, port), &http.Client{Timeout: 10 * time.Second}
	return &machineProgram{program: p, machine: m, banner: filepath.Join(m.t.TempDir(), "banner")}
}

// machineProgram is a program that runs on a machine, and its process.
type machineProgram struct {
	*program
	machine *machine
	now     *instance
	banner  string // the file that holds it
}

func (m *machineProgram) start() {
	m.t.Helper()
	banner, err := os.Create(m.banner)
	must.NoError(m.t, err)
	defer func() { _ = banner.Close() }() // the process has its own
	cmd := m.machine.command(os.Args[0], "serve")
	cmd.Stdout = banner
	m.now = m.launchAs(cmd)
}

func (m *machineProgram) isReady() bool {
	res, err := m.client.Get(m.url("/readyz")) //nolint:noctx // the client has a time-out
	if err != nil {
		return false
	}
	_ = res.Body.Close() // nothing more is read
	return res.StatusCode == http.StatusOK
}

// ownPostgres is a server of the operator's, on a machine.
type ownPostgres struct {
	*machine
	bin, dir string
	now      *process.Process
}

func newOwnPostgres(t testing.TB, m *machine) *ownPostgres {
	t.Helper()
	dir, err := os.MkdirTemp("", "hqpg") //nolint:usetesting // another user has to reach it
	must.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a rest costs nothing
	bin, err := pgdev.Installed(t.Context(), dir)
	must.NoError(t, err)
	p := &ownPostgres{machine: m, bin: bin, dir: filepath.Join(dir, "data")}
	must.NoError(t, os.Chmod(dir, 0o777)) // the user postgres makes a directory in it
	out, err := p.asPostgres("initdb", "--auth=trust", "--username=humanqa", "--no-sync", "-D", p.dir).CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	must.NoError(t, os.WriteFile(filepath.Join(p.dir, "pg_hba.conf"), []byte("host all all all trust\n"), 0o600))
	p.start()
	return p
}

func (p *ownPostgres) asPostgres(program string, args ...string) *exec.Cmd {
	asUser := []string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", filepath.Join(p.bin, program)}
	return p.command(append(asUser, args...)...)
}

func (p *ownPostgres) start() {
	p.t.Helper()
	p.now = process.Start(p.t, p.asPostgres("postgres", "-D", p.dir, "-c", "listen_addresses="+p.address, "-c", "max_connections=300",
		"-c", "unix_socket_directories="))
	now := p.now // a stop by SIGTERM would wait for clients to leave
	p.t.Cleanup(func() {
		if now.Running() {
			now.Stop(syscall.SIGINT)
		}
	})
	eventually.Within(p.t, eventually.Patience, func() error {
		conn, err := net.DialTimeout("tcp", p.address+":5432", time.Second) //nolint:noctx // it has a time-out
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// restart is pg_ctl restart -m fast: it cuts every connection.
func (p *ownPostgres) restart() {
	p.t.Helper()
	p.now.Stop(syscall.SIGINT)
	p.start()
}

func (p *ownPostgres) dsn() string {
	return "postgres://humanqa@" + p.address + ":5432/postgres?sslmode=disable"
}
