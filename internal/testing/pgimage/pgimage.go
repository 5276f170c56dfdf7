// Package pgimage makes the clusters of tests as copies of one, which is faster than initdb,
// and removes them.
//
// An image is the stopped cluster of a server, in a directory of its own. Copies share the
// identifier of their system, so they are one server to whatever compares servers by it.
package pgimage

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lib/pq"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"humanqa/internal/pgdev"
	"humanqa/internal/wholefile"
)

// A server that is killed leaves its shared memory behind. In a file of the cluster it goes
// with the cluster; initdb mostly chooses /dev/shm, where nobody would remove it.
const inFolder = "dynamic_shared_memory_type = mmap"

// chosen is initdb's choice.
var chosen = regexp.MustCompile(`(?m)^dynamic_shared_memory_type = \w+`)

// Kind is a name for all images that are made here from the same statements: it has the
// version of PostgreSQL, and a hash of the way that clusters are made.
func Kind(ctx context.Context) (string, error) {
	bin, err := pgdev.Installed(ctx, "")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s/postgres for its version: %w", bin, err)
	}
	_, version, _ := strings.Cut(strings.TrimSpace(string(out)), ") ")
	number, _, _ := strings.Cut(version, " ")
	sum := sha256.Sum256([]byte(version + strings.Join(pgdev.InitdbOptions, " ") + inFolder))
	return "postgres-" + number + "-" + hex.EncodeToString(sum[:8]), nil
}

// Save stops the server and copies its cluster to a path, as an image. It works beside the
// path and renames: a crash leaves no half-made image there. The superuser has no password
// in the image, so that each copy gets one of its own. Only this user can read or change it.
func Save(ctx context.Context, s *pgdev.Server, path string) error {
	if err := forgetPassword(ctx, s); err != nil {
		return err
	}
	if err := s.Stop(ctx); err != nil {
		return err
	}
	fresh := path + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove a half-made image: %w", err)
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return fmt.Errorf("create an image: %w", err)
	}
	if err := copyCluster(filepath.Join(s.Home(), "data"), fresh, os.Getuid(), os.Getgid()); err != nil {
		return fmt.Errorf("copy a cluster: %w", err)
	}
	settings := filepath.Join(fresh, "postgresql.conf")
	conf, err := os.ReadFile(settings)
	if err == nil {
		err = os.WriteFile(settings, chosen.ReplaceAll(conf, []byte(inFolder)), 0o600)
	}
	if err != nil {
		return fmt.Errorf("set where an image has its shared memory: %w", err)
	}
	unix.Sync() // a name that is on the disk before its files would be a broken image
	if err := errors.Join(os.Rename(fresh, path), wholefile.SyncDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("put an image in its place: %w", err)
	}
	return nil
}

// forgetPassword undoes what a start has set.
func forgetPassword(ctx context.Context, s *pgdev.Server) error {
	db, err := sql.Open("postgres", s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("open postgres: %w", err)
	}
	defer func() { _ = db.Close() }() // nothing is pending on it
	if _, err := db.ExecContext(ctx, "ALTER ROLE "+pq.QuoteIdentifier(pgdev.User)+" PASSWORD NULL"); err != nil {
		return fmt.Errorf("take the password of %s: %w", pgdev.User, err)
	}
	return nil
}

// Plant gives a data directory that has no cluster a copy of an image. A pgdev.Start finds it.
func Plant(ctx context.Context, dir, image string) error {
	h, release, err := pgdev.OpenHome(ctx, dir, silent())
	if err != nil {
		return err
	}
	defer release()
	if pgdev.Exists(dir) {
		return nil
	}
	uid, gid := h.Owner()
	fresh := h.Data() + ".new"
	if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o700), os.Lchown(fresh, uid, gid)); err != nil {
		return fmt.Errorf("create the cluster directory: %w", err)
	}
	if err := copyCluster(image, fresh, uid, gid); err != nil {
		return fmt.Errorf("copy the image of a cluster: %w", err)
	}
	return os.Rename(fresh, h.Data())
}

// fast gives up durability for speed: a crash of the machine loses the cluster.
const fast = `
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
shared_buffers = 64MB
`

// PlantFast is Plant for a cluster that is thrown away before the machine may crash.
func PlantFast(ctx context.Context, dir, image string) error {
	if err := Plant(ctx, dir, image); err != nil {
		return err
	}
	// The settings of ALTER SYSTEM win over those that a start writes.
	settings, err := os.OpenFile(filepath.Join(dir, "postgres", "data", "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = settings.WriteString(fast)
	return errors.Join(err, settings.Close())
}

// Remove removes the cluster of a data directory for good, wherever it is. A server that
// outlived its owner is stopped first; a living owner is an error that matches
// datadir.ErrInUse.
func Remove(ctx context.Context, dir string) error {
	link := filepath.Join(dir, "postgres")
	path, err := filepath.EvalSymlinks(link)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("locate the cluster of %s: %w", dir, err)
	}
	h, release, err := pgdev.OpenHome(ctx, dir, silent())
	if err != nil {
		return err
	}
	defer release()
	if sockets := h.SocketPath(); filepath.Dir(sockets) != path {
		_ = os.RemoveAll(sockets) // it may be another user's
	}
	if err := errors.Join(os.RemoveAll(path), os.RemoveAll(link)); err != nil {
		return fmt.Errorf("remove the cluster of %s: %w", dir, err)
	}
	return nil
}

func silent() logrus.FieldLogger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// copyCluster copies the files of a stopped cluster into a directory.
func copyCluster(from, to string, uid, gid int) error {
	buffer := make([]byte, 1<<20)
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		copied := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case entry.IsDir():
			err = os.Mkdir(copied, 0o700)
		case entry.Type().IsRegular():
			err = copyFile(path, copied, buffer)
		default:
			err = fmt.Errorf("%s is neither a file nor a directory", path)
		}
		if err == nil && uid != os.Getuid() {
			err = os.Lchown(copied, uid, gid)
		}
		return err
	})
}

func copyFile(from, to string, buffer []byte) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	// Without these wrappers the system's own copy is tried for each file; it is refused between file systems.
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, buffer)
	return errors.Join(err, out.Close())
}
