package service

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/httpapi"
	"humanqa/internal/testing/must"
)

// issue writes a certificate for localhost with this serial number, and its key.
func issue(t *testing.T, cert, key string, serial int64, written time.Time) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	must.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	must.NoError(t, err)
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		must.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
		must.NoError(t, os.Chtimes(file, written, written))
	}
}

func TestHTTPSTakesARenewedCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	now := time.Now().Truncate(time.Second)
	log, said := logrus.New(), &strings.Builder{}
	log.SetOutput(said)
	if _, err := openCertificate(cert, key, log); err == nil {
		t.Error("a certificate that is not there was read")
	}
	issue(t, cert, key, 1, now)
	pair, err := openCertificate(cert, key, log)
	must.NoError(t, err)
	plain, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	reach := httpapi.Reach{TLS: true}
	server := httpapi.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reach.Settle(r)
		_, _ = w.Write([]byte(r.URL.Scheme))
	}), log)
	go func() { ended <- httpapi.Serve(ctx, server, tls.NewListener(plain, pair.config()), time.Second) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	// shown is the serial number that a new connection is shown.
	shown := func() int64 {
		t.Helper()
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // it is looked at, not trusted
		c, err := dialer.DialContext(t.Context(), "tcp", plain.Addr().String())
		must.NoError(t, err)
		defer func() { _ = c.Close() }()
		_, err = c.Write([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
		must.NoError(t, err)
		answer := make([]byte, 4096)
		n, _ := c.Read(answer)
		if !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 200") {
			t.Errorf("answered %q", answer[:n])
		}
		return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := shown(); got != 1 {
		t.Errorf("the certificate has serial number %d", got)
	}
	issue(t, cert, key, 2, now.Add(time.Second))
	if got := shown(); got != 2 {
		t.Errorf("after a renewal the serial number is %d", got)
	}
	must.NoError(t, os.WriteFile(cert, []byte("half a fi"), 0o600))
	must.NoError(t, os.Chtimes(cert, now, now.Add(2*time.Second)))
	if got := shown(); got != 2 || strings.Count(said.String(), "the certificate before goes on") != 1 {
		t.Errorf("while it is being written the serial number is %d; said %q", got, said)
	}
	issue(t, cert, key, 3, now.Add(3*time.Second))
	if got := shown(); got != 3 {
		t.Errorf("once it is whole again the serial number is %d", got)
	}
}
