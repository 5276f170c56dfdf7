package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	grpcmeta "google.golang.org/grpc/metadata"

	"humanqa/internal/backoff"
	"humanqa/internal/wholefile"
)

// Reader is the user of the TLS address with the right to read and subscribe, and no
// other. The user exists once its password has been made.
const Reader = "reader"

const readerFile = "reader.password.sha256"

// MakeReader gives a new password to the reader of the node whose certificates are in
// dir; the old password ends. A node that runs knows it at once. The result is the
// address to hand out, with the password, which cannot be printed a second time. listen
// is the node's TLS address.
func MakeReader(dir, listen string) (address string, err error) {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("the node's TLS address: %w", err)
	}
	ca := filepath.Join(dir, "ca.crt")
	if _, err := os.Stat(ca); err != nil {
		return "", fmt.Errorf("the node has not served %s yet: %w", listen, err)
	}
	host := cmp.Or(hostOf(listen), "localhost") // without a host it serves every address of the machine
	password, hash := newPassword()
	// A node that reads the file meanwhile finds the old password, whole.
	if err := wholefile.Write(filepath.Join(dir, readerFile), []byte(hex.EncodeToString(hash[:])+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("save the reader's password: %w", err)
	}
	return "esdb://" + Reader + ":" + password + "@" + net.JoinHostPort(host, port) + "?tlsCaFile=" + (&url.URL{Path: ca}).EscapedPath(),
		nil
}

// DropReader ends the reader's password, and with it the reader's running calls; it says
// whether there was one.
func DropReader(dir string) (was bool, err error) {
	err = os.Remove(filepath.Join(dir, readerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// readerLook is how often a running call of a reader looks whether the password still holds.
const readerLook = 500 * time.Millisecond

// whileReader gives the context of a call that ends when its password does.
func (f *identityFile) whileReader(ctx context.Context, c caller) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		for backoff.Wait(ctx, readerLook) == nil {
			if !f.isReader(c.passwordHash) {
				cancel(errUnauthenticated)
			}
		}
	})
	return ctx, func() { cancel(nil); watch.Wait() }
}

// isReader reads the file each time: readers begin a call a day, and another
// process makes their password.
func (f *identityFile) isReader(hash [sha256.Size]byte) bool {
	saved, err := os.ReadFile(filepath.Join(f.dir, readerFile))
	if err != nil {
		return false // there is none
	}
	want, err := hex.DecodeString(strings.TrimSpace(string(saved)))
	return err == nil && subtle.ConstantTimeCompare(hash[:], want) == 1
}

func accessDenied() error {
	return &failure{codes.PermissionDenied, "Access Denied", grpcmeta.Pairs("exception", "access-denied")}
}
