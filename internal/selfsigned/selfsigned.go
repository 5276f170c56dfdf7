// Package selfsigned makes certificates for addresses that only this service's own clients
// trust.
package selfsigned

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"humanqa/internal/wholefile"
)

// Pair is a certificate and its key, in PEM.
type Pair struct{ Certificate, Key []byte }

// New makes a certificate of the template that begins an hour ago, since clocks differ, and
// ends after life. The authority signs it; without one it signs itself.
func New(template *x509.Certificate, life time.Duration, authority *tls.Certificate) (_ Pair, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make a certificate for %s: %w", template.Subject.CommonName, err)
		}
	}()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return Pair{}, err
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(life)
	parent, signer := template, crypto.PrivateKey(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

// TLS is the pair as crypto/tls uses it.
func (p Pair) TLS() (tls.Certificate, error) { return tls.X509KeyPair(p.Certificate, p.Key) }

// Kept gives the certificate in the files NAME.crt and NAME.key. It makes both anew of the
// template, as New does, where there are none, where the certificate ends within slack, and
// where it does not fit. A nil fits takes every certificate.
func Kept(
	name string, template *x509.Certificate, life, slack time.Duration, authority *tls.Certificate, fits func(*x509.Certificate) bool,
) (tls.Certificate, error) {
	certFile, keyFile := name+".crt", name+".key"
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pair, fmt.Errorf("load the certificate %s: %w", certFile, err)
	}
	if err == nil && time.Until(pair.Leaf.NotAfter) > slack && (fits == nil || fits(pair.Leaf)) {
		return pair, nil
	}
	made, err := New(template, life, authority)
	if err != nil {
		return pair, err
	}
	// The old certificate is removed, then the key is written. So a crash in between
	// leaves no certificate, and never one that does not fit its key.
	if err := os.Remove(certFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pair, fmt.Errorf("replace the certificate %s: %w", certFile, err)
	}
	if err := wholefile.Write(keyFile, made.Key, 0o600); err != nil {
		return pair, fmt.Errorf("save the key of a certificate: %w", err)
	}
	if err := wholefile.Write(certFile, made.Certificate, 0o600); err != nil {
		return pair, fmt.Errorf("save a certificate: %w", err)
	}
	return made.TLS()
}

// Names are the names and addresses by which a host is reached. An empty host, or one that
// stands for every address, has all that the machine has.
func Names(host string) (names []string, ips []net.IP) {
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
