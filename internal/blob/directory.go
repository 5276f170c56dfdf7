package blob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// directory keeps each file under its key, and the file's attributes beside it. It is
// opened anew each time: it may be mounted again while the service runs.
type directory struct{ path string }

// attributes stand in the file beside a file.
type attributes struct {
	ContentType string            `json:"user.content_type"`
	Metadata    map[string]string `json:"user.metadata"`
}

// root lets no key lead out of the directory, not by a link either.
func (d directory) root(key string) (*os.Root, string, error) {
	name := filepath.FromSlash(key)
	if !filepath.IsLocal(name) || path.Clean(key) != key || strings.HasSuffix(key, Attributes("")) {
		return nil, "", fmt.Errorf("%q is not a file's key", key)
	}
	root, err := os.OpenRoot(d.path)
	return root, name, err
}

func (d directory) Write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	root, name, err := d.root(key)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	beside, err := json.Marshal(attributes{contentType, about})
	if err != nil {
		return err
	}
	return put(root, name, func(w io.Writer) error {
		if _, err := io.Copy(w, content); err != nil {
			return fmt.Errorf("write %s: %w", key, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return put(root, Attributes(name), func(w io.Writer) error {
			_, err := w.Write(append(beside, '\n'))
			return err
		})
	})
}

// put makes a file visible once it is whole and on the disk: rows that Postgres keeps
// through a crash of the machine name it. Until then the content lies beside it, so that
// the rename never crosses devices. The directories protect the file, so its own mode
// need not.
func put(root *os.Root, name string, fill func(io.Writer) error) error {
	until := name + "." + uuid.NewString() + ".tmp"
	f, err := root.OpenFile(until, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(until, name)
	}
	if err != nil {
		_ = root.Remove(until) // the error says more
		return err
	}
	dir, err := root.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (d directory) Read(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	root, name, err := d.root(key)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // the opened file stays open
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("a directory: %w", fs.ErrNotExist)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, offset, length), f}, nil
}

func (d directory) Size(_ context.Context, key string) (int64, error) {
	root, name, err := d.root(key)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Each leaves out attributes, and half written files.
func (d directory) Each(ctx context.Context, see func(key string) error) error {
	return fs.WalkDir(os.DirFS(d.path), ".", func(key string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || entry.IsDir() || path.Ext(key) == Attributes("") || path.Ext(key) == ".tmp" {
			return err
		}
		return see(key)
	})
}

// Delete takes the attributes first: a repeat after a crash finds the rest by the
// file.
func (d directory) Delete(_ context.Context, key string) error {
	root, name, err := d.root(key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	defer func() { _ = root.Close() }()
	for _, file := range []string{Attributes(name), name} {
		if err := root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Erase also counts the files beside files: attributes, and half written files.
func (d directory) Erase(ctx context.Context, folder string) (files int, err error) {
	root, name, err := d.root(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), filepath.ToSlash(name), func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files++
		}
		return errors.Join(err, ctx.Err())
	})
	if errors.Is(err, fs.ErrNotExist) { // there is none, or it is removed meanwhile
		err = nil
	}
	return files, errors.Join(err, root.RemoveAll(name))
}

func (d directory) Room() (free, total int64, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(d.path, &disk); err != nil {
		return 0, 0, &fs.PathError{Op: "measure the disk of", Path: d.path, Err: err}
	}
	size := int64(disk.Bsize) //nolint:unconvert // the type differs by system
	return int64(disk.Bavail) * size, int64(disk.Blocks) * size, nil
}

func (d directory) Reachable(context.Context) error {
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	return root.Close()
}

func (directory) Close() error { return nil }
