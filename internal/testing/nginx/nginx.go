// Package nginx starts nginx between a test and a service.
package nginx

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

// Debian keeps the program out of the path of users.
const debian = "/usr/sbin/nginx"

// Start serves at an address with the lines of a server, and otherwise with the settings that
// Debian ships. The test is skipped where nginx is not installed; make contract fetches it.
func Start(t testing.TB, address, lines string) *process.Process {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = debian
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("it needs nginx: apt install nginx-light")
	}
	dir := t.TempDir()
	settings := filepath.Join(dir, "nginx.conf")
	// One process: a master that is killed leaves its workers behind.
	must.NoError(t, os.WriteFile(settings, fmt.Appendf(nil, `
daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
    sendfile on;
    tcp_nopush on;
    gzip on;
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {
        listen %s;
        %s
    }
}
`, address, lines), 0o600))
	server := process.Start(t, exec.CommandContext(context.WithoutCancel(t.Context()), program, "-p", dir, "-c", settings))
	eventually.Within(t, eventually.Patience, func() error {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	})
	return server
}
