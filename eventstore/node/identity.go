package node

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	"humanqa/internal/selfsigned"
	"humanqa/internal/strangers"
)

const (
	// Username is the user of the TLS address with all rights.
	Username = "admin"

	caLife           = 20 * 365 * 24 * time.Hour
	certificateLife  = 825 * 24 * time.Hour
	certificateSlack = 30 * 24 * time.Hour

	streamsService = "/event_store.client.streams.Streams/"
	readMethod     = streamsService + "Read" // of streams and of $all, subscriptions too
)

// identityFile holds the node's certificate for its TLS address, and the hash of the
// clients' password. The certificate is a leaf, signed by an authority of the node's
// own: some clients do not accept an authority as a server's certificate. The password
// is 256 random bits, so its plain hash is kept. It cannot be printed a second time.
type identityFile struct {
	certificate  tls.Certificate
	caFile       string // the authority that clients trust
	dir          string
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
	ca, err := selfsigned.Kept(filepath.Join(dir, "ca"), caTemplate(), caLife, certificateSlack, nil, nil)
	if err != nil {
		return nil, err
	}
	leaf, err := selfsigned.Kept(filepath.Join(dir, "node"), leafTemplate(address), certificateLife, certificateSlack, &ca, signedBy(ca.Leaf))
	if err != nil {
		return nil, err
	}
	f := &identityFile{certificate: leaf, caFile: filepath.Join(dir, "ca.crt"), dir: dir}
	if err := f.loadPassword(filepath.Join(dir, "node.password.sha256")); err != nil {
		return nil, err
	}
	return f, nil
}

// signedBy refuses the leaf of another authority, and a self-signed certificate of
// an older version.
func signedBy(ca *x509.Certificate) func(*x509.Certificate) bool {
	return func(leaf *x509.Certificate) bool { return !leaf.IsCA && leaf.CheckSignatureFrom(ca) == nil }
}

func caTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:  pkix.Name{CommonName: "humanqa event store authority"},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		IsCA:     true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
}

// leafTemplate names the host it listens on, and the machine.
func leafTemplate(address string) *x509.Certificate {
	names, ips := selfsigned.Names(hostOf(address))
	if name, err := os.Hostname(); err == nil && !slices.Contains(names, name) {
		names = append(names, name)
	}
	return &x509.Certificate{
		Subject:  pkix.Name{CommonName: "humanqa event store node"},
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    names, IPAddresses: ips,
	}
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
	f.password, f.passwordHash = newPassword()
	if err := os.WriteFile(file, []byte(hex.EncodeToString(f.passwordHash[:])+"\n"), 0o600); err != nil {
		return fmt.Errorf("save the node's password: %w", err)
	}
	return nil
}

// newPassword makes a password of 256 random bits.
func newPassword() (password string, hash [sha256.Size]byte) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	password = base64.RawURLEncoding.EncodeToString(random)
	return password, sha256.Sum256([]byte(password))
}

// GeneratedPassword is the password of the TLS address, in the one process
// that made it; empty ever after. The caller shows it once.
func (n *Node) GeneratedPassword() string {
	if n.identity == nil {
		return ""
	}
	return n.identity.password
}

// caller is the user of a call at the TLS address, whose password is right.
type caller struct {
	user         string
	passwordHash [sha256.Size]byte
}

type callerKey struct{}

// callerOf gives the caller; none for a stranger, and where there are no users.
func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// identify looks for a user in a call's headers. gRPC has read none of its message yet, and
// reads nothing more of the connection meanwhile. A user makes the connection known.
func (f *identityFile) identify(ctx context.Context, info *tap.Info) (context.Context, error) {
	for _, header := range info.Header.Get("authorization") {
		user, password, ok := basicCredentials(header)
		if !ok {
			continue
		}
		c := caller{user, sha256.Sum256([]byte(password))}
		if !f.knows(c) {
			continue
		}
		if p, ok := peer.FromContext(ctx); ok {
			if conn, ok := p.AuthInfo.(*strangers.Conn); ok {
				conn.Know()
			}
		}
		return context.WithValue(ctx, callerKey{}, c), nil
	}
	return ctx, nil // the call is refused where its trailers can be
}

func (f *identityFile) knows(c caller) bool {
	return is(c.user, Username) && subtle.ConstantTimeCompare(c.passwordHash[:], f.passwordHash[:]) == 1 ||
		is(c.user, Reader) && f.isReader(c.passwordHash)
}

// authorise refuses calls of the Streams service without a user, or without the right. The
// rest is open, as in the original: clients ask for features before they sign in.
func (f *identityFile) authorise(ctx context.Context, method string) error {
	switch user := callerOf(ctx).user; {
	case !strings.HasPrefix(method, streamsService), user == Username, user == Reader && method == readMethod:
		return nil
	case user == Reader:
		return answer(ctx, accessDenied())
	}
	return errUnauthenticated
}

var errUnauthenticated = &failure{code: codes.Unauthenticated, message: "Unauthenticated"}

func basicCredentials(header string) (user, password string, ok bool) {
	scheme, value, _ := strings.Cut(header, " ")
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil || !strings.EqualFold(scheme, "basic") {
		return "", "", false
	}
	user, password, _ = strings.Cut(string(decoded), ":")
	return user, password, true
}

func is(user, name string) bool { return subtle.ConstantTimeCompare([]byte(user), []byte(name)) == 1 }

func (f *identityFile) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := f.authorise(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

func (f *identityFile) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	ctx := stream.Context()
	if err := f.authorise(ctx, info.FullMethod); err != nil {
		return err
	}
	if c := callerOf(ctx); c.user == Reader {
		reading, end := f.whileReader(ctx, c)
		defer end()
		stream = &termedStream{stream, reading}
	}
	return handler(srv, stream)
}
