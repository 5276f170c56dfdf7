package mail_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"humanqa/internal/mail"
	"humanqa/internal/selfsigned"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
)

func TestTheServerIsReachedByTLS(t *testing.T) {
	cert, roots := certificate(t)
	for scheme, change := range map[string]func(*smtp.Server){
		"smtp":  func(s *smtp.Server) { s.TLSConfig, s.AllowInsecureAuth = cert, false },
		"smtps": nil,
	} {
		t.Run(scheme, func(t *testing.T) {
			w := setup(t)
			smtpd := mailtest.Start(t, "127.0.0.1:0", change)
			if scheme == "smtps" { // TLS from the first byte
				smtpd = behindTLS(t, smtpd, cert)
			}
			server, err := mail.ParseServer(scheme+"://ann:p%40ss@"+smtpd.Address, "qa@qa.example")
			must.NoError(t, err)
			w.joins("ann", "ann@example.com", everything, "acc")
			w.tell(report("acc", "Checkout", "All 3 passed", false))
			stop := w.send(server, nil)
			eventually.True(t, "a strange certificate is refused", func() bool {
				return w.count(`SELECT count(*) FROM mail.letters WHERE last_error LIKE '%certificate%'`) == 1
			})
			stop()
			server.Roots = roots
			w.send(server, nil)
			eventually.True(t, "it is told", func() bool { return len(smtpd.Letters()) == 1 })
		})
	}
	t.Run("a server without STARTTLS is not told the password", func(t *testing.T) {
		w := setup(t)
		smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
		server, err := mail.ParseServer("smtp://ann:p%40ss@"+smtpd.Address, "qa@qa.example")
		must.NoError(t, err)
		w.joins("ann", "ann@example.com", everything, "acc")
		w.tell(report("acc", "Checkout", "All 3 passed", false))
		w.send(server, nil)
		eventually.True(t, "it waits", func() bool {
			return w.count(`SELECT count(*) FROM mail.letters WHERE last_error LIKE '%STARTTLS%'`) == 1
		})
		if smtpd.User() != "" || len(smtpd.Letters()) != 0 {
			t.Errorf("%q signed in", smtpd.User())
		}
	})
}

// behindTLS is the server behind a port that speaks TLS from the first byte.
func behindTLS(t *testing.T, to *mailtest.Server, cfg *tls.Config) *mailtest.Server {
	t.Helper()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	must.NoError(t, err)
	behind := to.Address
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			busy.Go(func() {
				defer func() { _ = conn.Close() }()
				plain, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", behind)
				if err != nil {
					return
				}
				busy.Go(func() { _, _ = io.Copy(conn, plain); _ = conn.Close() })
				_, _ = io.Copy(plain, conn)
				_ = plain.Close()
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); busy.Wait() })
	to.Address = ln.Addr().String()
	return to
}

func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	pair, err := selfsigned.New(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Hour, nil)
	must.NoError(t, err)
	own, err := pair.TLS()
	must.NoError(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pair.Certificate) {
		t.Fatal("the certificate is none")
	}
	return &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}, roots
}

func TestSettingsThatNoServerFits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ url, from, want string }{
		"another scheme":   {"https://mx.example", "qa@example.com", "is no URL that starts with smtp:// or smtps://"},
		"no host":          {"smtp://:25", "qa@example.com", "is no URL that starts with smtp:// or smtps://"},
		"a path":           {"smtp://mx.example/inbox", "qa@example.com", "must have no path: use smtp://host:port"},
		"a bad port":       {"smtp://mx.example:0", "qa@example.com", "has no port from 1 to 65535"},
		"a password plain": {"smtp://a:secret@mx.example?starttls=off", "qa@example.com", "would send the password without TLS: leave starttls=off out"},
		"a bad option":     {"smtp://mx.example?starttls=maybe", "qa@example.com", "has an unknown value of starttls: use off, or leave it out"},
		"no sender":        {"smtp://mx.example", "", "must be an address such as humanqa <qa@example.com>"},
		"two senders":      {"smtp://mx.example", "a@b.example\r\nBcc: c@d.example", "must be an address such as humanqa <qa@example.com>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := mail.ParseServer(test.url, test.from); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}
