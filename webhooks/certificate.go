package webhooks

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
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

// loopbackCertificate reads the certificate from the directory, or makes it
// with an authority of its own. The authority's key is forgotten at once and
// its certificate is bound to loopback: trusting it trusts nothing else.
//
// The authority is written last: a crash before leaves what the next call
// replaces.
func loopbackCertificate(dir string, now time.Time) (tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if cert, ok := readCertificate(certFile, keyFile, CAFile(dir), now); ok {
		return cert, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return tls.Certificate{}, fmt.Errorf("make the certificates' directory: %w", err)
	}
	ca, cert, key, err := makeCertificates(now)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate for loopback: %w", err)
	}
	for _, f := range []struct {
		path string
		data []byte
		mode os.FileMode
	}{{keyFile, key, 0o600}, {certFile, cert, 0o644}, {CAFile(dir), ca, 0o644}} {
		if err := replaceFile(f.path, f.data, f.mode); err != nil {
			return tls.Certificate{}, err
		}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("use the certificate: %w", err)
	}
	return pair, nil
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

func makeCertificates(now time.Time) (ca, cert, key []byte, err error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "humanqa listen (local trials)"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: loopbackNames, PermittedIPRanges: loopbackNets,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, nil, nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano() + 1), Subject: pkix.Name{CommonName: "humanqa listen"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: loopbackNames, IPAddresses: loopbackIPs,
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, authority, &leafKey.PublicKey, caKey)
	if err != nil {
		return nil, nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(leafKey)
	if err != nil {
		return nil, nil, nil, err
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	return block("CERTIFICATE", caDER), block("CERTIFICATE", leafDER), block("PRIVATE KEY", keyDER), nil
}

// replaceFile never shows half a file, nor a key to others.
func replaceFile(path string, data []byte, mode os.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // it is gone after the rename
	_, err = tmp.Write(data)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), mode)
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
