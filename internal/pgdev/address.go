package pgdev

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ErrNotRunning says that no server runs on a data directory.
var ErrNotRunning = errors.New("no embedded postgres runs on this data directory")

// Address holds the addresses of a server.
type Address struct {
	SocketDir string
	Port      int

	password string
	major    string // the version that made the cluster
	silent   bool   // it does not listen by TCP
	home     string // directory
}

// DSN is the URL of a database over the unix socket, for lib/pq and libpq.
func (a Address) DSN(dbname string) string {
	u := a.url(dbname, url.Values{
		"host": {a.SocketDir},
		"port": {strconv.Itoa(a.Port)},
	})
	u.User = url.User(User)
	return u.String()
}

// Silent says that the server listens on its socket alone: its port was taken.
func (a Address) Silent() bool { return a.silent }

// Certificate is the file by which analysts on other machines verify the server.
func (a Address) Certificate() string { return Home{dir: a.home}.certificateFile() }

// TCPDSN is the URL of a database over loopback TCP. It carries the password.
func (a Address) TCPDSN(dbname string) string {
	u := a.url(dbname, url.Values{})
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(a.Port))
	u.User = url.UserPassword(User, a.password)
	return u.String()
}

// TLSDSN is the URL of a database at Config.Listen, verified by Certificate. The
// analyst adds a name and a password to it.
func (a Address) TLSDSN(dbname, listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("read the address %s: %w", listen, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return "", fmt.Errorf("name this machine: %w", err)
		}
	}
	u := a.url(dbname, url.Values{})
	u.Host = net.JoinHostPort(host, port)
	u.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {a.Certificate()}}.Encode()
	return u.String(), nil
}

func (Address) url(dbname string, query url.Values) *url.URL {
	query.Set("sslmode", "disable") // a socket, or loopback
	return &url.URL{Scheme: "postgres", Path: "/" + dbname, RawQuery: query.Encode()}
}

// Exists says whether a data directory has a cluster, started or not.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, linkName, "data", "PG_VERSION"))
	// A cluster that only root and its owner can read exists, too.
	return err == nil || errors.Is(err, fs.ErrPermission)
}

// Running is the address of the server that another process of ours runs on a
// data directory; ErrNotRunning when there is none. The commands use it while
// the service holds the directory.
func Running(dir string) (Address, error) {
	dir, err := realPath(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Address{}, ErrNotRunning
	}
	if err != nil {
		return Address{}, err
	}
	path, err := filepath.EvalSymlinks(filepath.Join(dir, linkName))
	if errors.Is(err, fs.ErrNotExist) {
		return Address{}, ErrNotRunning
	}
	if err != nil {
		return Address{}, fmt.Errorf("locate the cluster of %s: %w", dir, err)
	}
	h := Home{dir: path}
	pf, err := readPIDFile(h.Data())
	if err != nil {
		return Address{}, err
	}
	if !pf.ready || !servesCluster(pf.pid, h.Data()) {
		return Address{}, ErrNotRunning
	}
	password, err := os.ReadFile(h.passwordFile())
	if err != nil {
		return Address{}, fmt.Errorf("read the database password: %w", err)
	}
	return Address{SocketDir: pf.socketDir, Port: pf.port, password: string(password), major: h.clusterVersion(), silent: pf.listens == "",
		home: path}, nil
}

// pidFile is the content of a postmaster's pid file.
type pidFile struct {
	pid       int // 0 when there is no file
	port      int
	socketDir string
	listens   string // the first address by TCP
	ready     bool
}

// readPIDFile reads data/postmaster.pid. Its lines: process id, data directory,
// start time, port, socket directory, listen address, shared memory, status.
// The postmaster writes them one after the other, so later ones may be missing.
func readPIDFile(data string) (pidFile, error) {
	b, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return pidFile{}, nil
	}
	if err != nil {
		return pidFile{}, fmt.Errorf("read postmaster.pid: %w", err)
	}
	lines := strings.Split(string(b), "\n")
	line := func(n int) string {
		if n < len(lines) {
			return strings.TrimSpace(lines[n])
		}
		return ""
	}
	var pf pidFile
	pf.pid = atoi(line(0))
	pf.port = atoi(line(3))
	pf.socketDir, pf.listens = line(4), line(5)
	pf.ready = line(7) == "ready" && pf.port != 0 && pf.socketDir != ""
	return pf, nil
}

// atoi is 0 for a number that is missing, or was cut short by a crash.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
