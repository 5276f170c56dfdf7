package pgdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"humanqa/internal/wholefile"
)

// ImageKind is a name for all images that are made here from the same statements: it has the
// version of PostgreSQL, and a hash of the way that clusters are made.
func ImageKind(ctx context.Context) (string, error) {
	bin, err := findBinaries(ctx, "")
	if err != nil {
		return "", err
	}
	version, err := versionIn(ctx, bin)
	if err != nil {
		return "", err
	}
	number, _, _ := strings.Cut(version, " ")
	return "postgres-" + number + "-" + shortHash(version+strings.Join(initdbOptions, " ")), nil
}

// SaveImage stops the server and copies its cluster to a path, as an image for Config.Image
// and Plant. It works beside the path and renames: a crash leaves no half-made image there.
// The superuser has no password in the image, so that each copy gets one of its own. Only
// this user can read or change it.
func (s *Server) SaveImage(ctx context.Context, path string) error {
	if err := s.forgetPassword(ctx); err != nil {
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
	if err := copyCluster(s.home.data(), fresh, owner{uid: os.Getuid(), gid: os.Getgid()}); err != nil {
		return fmt.Errorf("copy a cluster: %w", err)
	}
	unix.Sync() // a name that is on the disk before its files would be a broken image
	if err := errors.Join(os.Rename(fresh, path), wholefile.SyncDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("put an image in its place: %w", err)
	}
	return nil
}

// Plant gives a data directory that has no cluster a copy of an image. A Start finds it.
func Plant(ctx context.Context, dir, image string) error {
	h, release, err := openHome(ctx, dir, silent())
	if err != nil {
		return err
	}
	defer release()
	return h.ensureCluster(ctx, "", image, false)
}

// Remove removes the cluster of a data directory for good, wherever it is. A server that
// outlived its owner is stopped first; a living owner is an error that matches
// datadir.ErrInUse.
func Remove(ctx context.Context, dir string) error {
	link := filepath.Join(dir, linkName)
	path, err := filepath.EvalSymlinks(link)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("locate the cluster of %s: %w", dir, err)
	}
	own, err := currentOwner()
	if err != nil {
		return err
	}
	h := home{dir: path, owner: own.keeping(path)}
	release, err := h.take(ctx, dir, silent())
	if err != nil {
		return err
	}
	defer release()
	if sockets := h.socketPath(); filepath.Dir(sockets) != h.dir {
		_ = os.RemoveAll(sockets) // it may be another user's
	}
	if err := errors.Join(os.RemoveAll(path), os.RemoveAll(link)); err != nil {
		return fmt.Errorf("remove the cluster of %s: %w", dir, err)
	}
	return nil
}

// copyCluster copies the files of a stopped cluster into a directory.
func copyCluster(from, to string, own owner) error {
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
		if err == nil && own.uid != os.Getuid() {
			err = os.Lchown(copied, own.uid, own.gid)
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
