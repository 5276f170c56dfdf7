package pgdev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"humanqa/internal/wholefile"
)

const (
	// No system uses this range for outgoing connections, so that a port stays free
	// while the server is stopped.
	firstPort, ports = 20000, 10000
	portAttempts     = 100
)

func (h Home) portFile() string { return filepath.Join(h.dir, "port") }

// choosePort sets the server's port, for good: that of Listen, the earlier one, or a new
// one. It sets fresh if no client can know the port yet.
func (s *Server) choosePort(ctx context.Context) error {
	if s.listen != "" {
		_, port, err := net.SplitHostPort(s.listen)
		if err == nil {
			s.Port, err = strconv.Atoi(port)
		}
		if err != nil || s.Port == 0 {
			return fmt.Errorf("%s is no address to listen at, with a port", s.listen)
		}
		if !s.portFree(ctx) {
			return fmt.Errorf("%s: address already in use: set HUMANQA_POSTGRES_LISTEN to a free address", s.listen)
		}
		return s.keepPort()
	}
	text, err := os.ReadFile(s.home.portFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the database's port: %w", err)
	}
	if s.Port = atoi(strings.TrimSpace(string(text))); s.Port != 0 {
		return nil
	}
	s.fresh = true
	return s.newPort(ctx)
}

// newPort takes a port that is free at the moment.
func (s *Server) newPort(ctx context.Context) error {
	for range portAttempts {
		s.Port = firstPort + rand.IntN(ports)
		if s.portFree(ctx) {
			return s.keepPort()
		}
	}
	return fmt.Errorf("find a free port from %d to %d", firstPort, firstPort+ports)
}

func (s *Server) keepPort() error {
	if err := wholefile.Write(s.home.portFile(), []byte(strconv.Itoa(s.Port)+"\n"), 0o644); err != nil {
		return fmt.Errorf("keep the database's port: %w", err)
	}
	return nil
}

// addresses are the server's hosts for TCP: loopback, and that of Listen.
func (s *Server) addresses() []string {
	host, _, err := net.SplitHostPort(s.listen)
	switch ip := net.ParseIP(host); {
	case err != nil || host == "127.0.0.1" || host == "localhost":
		return []string{"127.0.0.1"}
	case host == "":
		return []string{"*"}
	case ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		return []string{host}
	}
	return []string{"127.0.0.1", host}
}

func (s *Server) portFree(ctx context.Context) bool {
	for _, host := range s.addresses() {
		if host == "*" {
			host = ""
		}
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(s.Port)))
		if err != nil || l.Close() != nil {
			return false
		}
	}
	return true
}
