package pgdev

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"humanqa/internal/selfsigned"
)

// A certificate is made anew when it ends soon, or names another address. Analysts have
// a copy of it, so it lasts.
const (
	certificateLife  = 10 * 365 * 24 * time.Hour
	certificateSlack = 90 * 24 * time.Hour
)

func (h Home) certificateFile() string { return filepath.Join(h.dir, "server.crt") }
func (h Home) keyFile() string         { return filepath.Join(h.dir, "server.key") }

// ensureCertificate makes the server's certificate for Listen.
func (h Home) ensureCertificate(host string) error {
	names, ips := selfsigned.Names(host)
	_, err := selfsigned.Kept(filepath.Join(h.dir, "server"), &x509.Certificate{
		Subject:  pkix.Name{CommonName: "humanqa postgres"},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true, // clients verify it by itself
		DNSNames: names, IPAddresses: ips,
	}, certificateLife, certificateSlack, nil, func(c *x509.Certificate) bool { return covers(c, names, ips) })
	if err == nil { // the server reads both, and all may read the certificate
		err = errors.Join(os.Lchown(h.keyFile(), h.owner.uid, h.owner.gid), os.Chmod(h.certificateFile(), 0o644))
	}
	if err != nil {
		return fmt.Errorf("make the database's certificate: %w", err)
	}
	return nil
}

// covers says that a certificate is good for all names; earlier names do no harm.
func covers(c *x509.Certificate, names []string, ips []net.IP) bool {
	hosts := slices.Clone(names)
	for _, ip := range ips {
		hosts = append(hosts, ip.String())
	}
	return !slices.ContainsFunc(hosts, func(host string) bool { return c.VerifyHostname(host) != nil })
}
