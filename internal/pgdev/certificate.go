package pgdev

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"humanqa/internal/selfsigned"
	"humanqa/internal/wholefile"
)

// A certificate is made anew when it ends soon, or names another address. Analysts have
// a copy of it, so it lasts.
const (
	certificateLife  = 10 * 365 * 24 * time.Hour
	certificateSlack = 90 * 24 * time.Hour
)

func (h home) certificateFile() string { return filepath.Join(h.dir, "server.crt") }
func (h home) keyFile() string         { return filepath.Join(h.dir, "server.key") }

// ensureCertificate makes the server's certificate for Listen.
func (h home) ensureCertificate(host string) error {
	names, ips := selfsigned.Names(host)
	pair, err := tls.LoadX509KeyPair(h.certificateFile(), h.keyFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("load the database's certificate: %w", err)
	}
	if err == nil && time.Until(pair.Leaf.NotAfter) > certificateSlack && covers(pair.Leaf, names, ips) {
		return nil
	}
	made, err := selfsigned.New(&x509.Certificate{
		Subject:  pkix.Name{CommonName: "humanqa postgres"},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true, // clients verify it by itself
		DNSNames: names, IPAddresses: ips,
	}, certificateLife, nil)
	if err != nil {
		return err
	}
	// The certificate is removed first, so that after a crash in between it is made anew.
	if err := os.Remove(h.certificateFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("replace the database's certificate: %w", err)
	}
	err = wholefile.Write(h.keyFile(), made.Key, 0o600)
	if err == nil {
		err = os.Lchown(h.keyFile(), h.owner.uid, h.owner.gid) // the server reads it
	}
	if err == nil {
		err = wholefile.Write(h.certificateFile(), made.Certificate, 0o644)
	}
	if err != nil {
		return fmt.Errorf("save the database's certificate: %w", err)
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
