package receiver

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"humanqa/internal/selfsigned"
	"humanqa/internal/wholefile"
)

const (
	certificateLife = 365 * 24 * time.Hour
	// renewBefore is how early an old certificate is replaced.
	renewBefore = 30 * 24 * time.Hour
)

var (
	loopbackNames = []string{"localhost"}
	loopbackIPs   = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	loopbackNets  = []*net.IPNet{
		{IP: net.IPv4(127, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)},
		{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)},
	}
)

// loopbackCertificate reads the certificate from the directory, or makes it with an
// authority of its own. The authority's key is forgotten at once and its certificate is
// bound to loopback: trusting it trusts nothing else.
//
// The authority is written last: a crash before leaves files that the next call replaces.
func loopbackCertificate(dir string, now time.Time) (tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if cert, ok := readCertificate(certFile, keyFile, CAFile(dir), now); ok {
		return cert, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return tls.Certificate{}, fmt.Errorf("make the certificates' directory: %w", err)
	}
	authority, leaf, err := makeCertificates()
	if err != nil {
		return tls.Certificate{}, err
	}
	for _, f := range []struct {
		path string
		data []byte
		mode os.FileMode
	}{{keyFile, leaf.Key, 0o600}, {certFile, leaf.Certificate, 0o644}, {CAFile(dir), authority.Certificate, 0o644}} {
		if err := wholefile.Write(f.path, f.data, f.mode); err != nil {
			return tls.Certificate{}, fmt.Errorf("write %s: %w", f.path, err)
		}
	}
	return leaf.TLS()
}

// readCertificate says false unless all three files belong together and are
// good for a while.
func readCertificate(certFile, keyFile, caFile string, now time.Time) (tls.Certificate, bool) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return tls.Certificate{}, false
	}
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return tls.Certificate{}, false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	_, err = cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: loopbackNames[0], CurrentTime: now.Add(renewBefore)})
	return cert, err == nil
}

func makeCertificates() (authority, leaf selfsigned.Pair, err error) {
	authority, err = selfsigned.New(&x509.Certificate{
		Subject: pkix.Name{CommonName: "hqa listen (local trials)"},
		IsCA:    true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: loopbackNames, PermittedIPRanges: loopbackNets,
	}, certificateLife, nil)
	if err != nil {
		return authority, leaf, err
	}
	signer, err := authority.TLS()
	if err != nil {
		return authority, leaf, err
	}
	leaf, err = selfsigned.New(&x509.Certificate{
		Subject:  pkix.Name{CommonName: "hqa listen"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: loopbackNames, IPAddresses: loopbackIPs,
	}, certificateLife, &signer)
	return authority, leaf, err
}
