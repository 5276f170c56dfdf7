package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcmeta "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	// Username is the one user of the TLS address.
	Username = "admin"

	certificateLife  = 825 * 24 * time.Hour
	certificateSlack = 30 * 24 * time.Hour

	streamsService = "/event_store.client.streams.Streams/"
)

// identityFile is how the node proves itself on its TLS address, and how
// clients prove themselves to it. The password is 256 random bits, so its plain
// hash is kept; nobody can print it a second time.
type identityFile struct {
	certificate  tls.Certificate
	certFile     string
	passwordHash [sha256.Size]byte
	// password is set only in the process that made it.
	password string
}

func loadIdentity(dir, address string) (*identityFile, error) {
	if dir == "" {
		return nil, errors.New("a TLS address needs a certificate directory")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the certificate directory: %w", err)
	}
	f := &identityFile{certFile: filepath.Join(dir, "node.crt")}
	if err := f.loadCertificate(filepath.Join(dir, "node.key"), address); err != nil {
		return nil, err
	}
	if err := f.loadPassword(filepath.Join(dir, "node.password.sha256")); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *identityFile) loadCertificate(keyFile, address string) error {
	pair, err := tls.LoadX509KeyPair(f.certFile, keyFile)
	switch {
	case err == nil && pair.Leaf != nil && time.Until(pair.Leaf.NotAfter) > certificateSlack:
		f.certificate = pair
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("load the node's certificate: %w", err)
	}
	certPEM, keyPEM, err := newCertificate(address)
	if err != nil {
		return fmt.Errorf("make the node's certificate: %w", err)
	}
	// The key first: a crash in between leaves a certificate missing, and the
	// next start makes both anew.
	if err := os.WriteFile(keyFile, keyPEM, 0o600); err != nil {
		return fmt.Errorf("save the node's key: %w", err)
	}
	if err := os.WriteFile(f.certFile, certPEM, 0o600); err != nil {
		return fmt.Errorf("save the node's certificate: %w", err)
	}
	f.certificate, err = tls.X509KeyPair(certPEM, keyPEM)
	return err
}

func newCertificate(address string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "humanqa event store node"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if host, _, err := net.SplitHostPort(address); err == nil && host != "" {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if name, err := os.Hostname(); err == nil {
		template.DNSNames = append(template.DNSNames, name)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

func (f *identityFile) loadPassword(file string) error {
	saved, err := os.ReadFile(file)
	if err == nil {
		if n, err := hex.Decode(f.passwordHash[:], []byte(strings.TrimSpace(string(saved)))); err != nil || n != sha256.Size {
			return fmt.Errorf("the node's password file is damaged, remove it for a new password: %s", file)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("load the node's password: %w", err)
	}
	var random [32]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fmt.Errorf("make the node's password: %w", err)
	}
	f.password = base64.RawURLEncoding.EncodeToString(random[:])
	f.passwordHash = sha256.Sum256([]byte(f.password))
	if err := os.WriteFile(file, []byte(hex.EncodeToString(f.passwordHash[:])+"\n"), 0o600); err != nil {
		return fmt.Errorf("save the node's password: %w", err)
	}
	return nil
}

// GeneratedPassword is the password of the TLS address, in the one process
// that made it; empty ever after. The caller shows it once.
func (n *Node) GeneratedPassword() string {
	if n.identity == nil {
		return ""
	}
	return n.identity.password
}

// authorise checks basic credentials for the Streams service. The rest is
// open, as in the original: clients ask for features before they sign in.
func (f *identityFile) authorise(ctx context.Context, method string) error {
	if !strings.HasPrefix(method, streamsService) {
		return nil
	}
	md, _ := grpcmeta.FromIncomingContext(ctx)
	for _, header := range md.Get("authorization") {
		scheme, value, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "basic") {
			continue
		}
		decoded, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			continue
		}
		user, password, _ := strings.Cut(string(decoded), ":")
		hash := sha256.Sum256([]byte(password))
		if subtle.ConstantTimeCompare(hash[:], f.passwordHash[:])&subtle.ConstantTimeCompare([]byte(user), []byte(Username)) == 1 {
			return nil
		}
	}
	return status.Error(codes.Unauthenticated, "Unauthenticated")
}

func (f *identityFile) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := f.authorise(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (f *identityFile) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := f.authorise(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return handler(srv, stream)
}
