package pgdev

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A certificate is made anew when it ends soon, or names another address. Analysts have
// a copy of it, so it lasts.
const (
	certificateLife  = 10 * 365 * 24 * time.Hour
	certificateSlack = 90 * 24 * time.Hour
)

func (h home) certificateFile() string { return filepath.Join(h.dir, "server.crt") }
func (h home) keyFile() string         { return filepath.Join(h.dir, "server.key") }

// ensureCertificate makes what the server proves itself by at Listen.
func (h home) ensureCertificate(host string) error {
	names, ips := namesOf(host)
	pair, err := tls.LoadX509KeyPair(h.certificateFile(), h.keyFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("load the database's certificate: %w", err)
	}
	if err == nil && time.Until(pair.Leaf.NotAfter) > certificateSlack && covers(pair.Leaf, names, ips) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the database's key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("make the database's certificate: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "humanqa postgres"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true, // it is what it is verified by
		DNSNames: names, IPAddresses: ips,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("make the database's certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the database's key: %w", err)
	}
	// The certificate goes first: one whose key is missing is made anew.
	if err := os.Remove(h.certificateFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace the database's certificate: %w", err)
	}
	err = writeFile(h.keyFile(), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), 0o600)
	if err == nil {
		err = os.Lchown(h.keyFile(), h.owner.uid, h.owner.gid) // the server reads it
	}
	if err == nil {
		err = writeFile(h.certificateFile(), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})), 0o644)
	}
	if err != nil {
		return fmt.Errorf("save the database's certificate: %w", err)
	}
	return nil
}

// namesOf are the names and addresses by which a host is reached; where it is every
// address, all that the machine has.
func namesOf(host string) (names []string, ips []net.IP) {
	names, ips = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback}
	ip := net.ParseIP(host)
	switch {
	case host != "" && ip == nil:
		return append(names, host), ips
	case ip != nil && !ip.IsUnspecified():
		return names, append(ips, ip)
	}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return names, ips // fewer names is no failure
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			ips = append(ips, n.IP)
		}
	}
	return names, ips
}

// covers says that a certificate is good for all names; those of before do no harm.
func covers(c *x509.Certificate, names []string, ips []net.IP) bool {
	for _, name := range names {
		if c.VerifyHostname(name) != nil {
			return false
		}
	}
	for _, ip := range ips {
		if c.VerifyHostname(ip.String()) != nil {
			return false
		}
	}
	return true
}
