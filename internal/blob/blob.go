// Package blob keeps files: the evidence that checkers upload.
//
// A bucket is a directory of this machine, or a bucket that speaks S3. A file is
// written once and never changed. It becomes visible whole or not at all. A crash
// during a write leaves at most a stray temporary file in a directory, or an unfinished
// upload in S3. Nothing reads either.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// Bucket holds files by their keys. It is safe for concurrent use.
type Bucket struct{ files store }

// store is where the files lie: directory or objects.
type store interface {
	// write stores nothing when it fails, which it does when content or ctx fails.
	write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error
	read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	size(ctx context.Context, key string) (int64, error)
	each(ctx context.Context, see func(key string) error) error
	remove(ctx context.Context, key string) error
	erase(ctx context.Context, folder string) (files int, err error)
	room() (free, total int64, err error)
	reachable(ctx context.Context) error
	close() error
}

// Check checks a bucket's URL without opening it: file:///dir or s3://bucket?region=…,
// with endpoint=… and use_path_style=true for servers that only speak S3. The error never
// quotes the URL.
func Check(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.User != nil || u.Fragment != "":
	case u.Scheme == "s3" && u.Host != "":
		_, err := parseObjects(u)
		return err
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path) && u.RawQuery == "":
		return nil
	}
	return errors.New("is neither s3://bucket?region=… nor file:///an/absolute/path")
}

// Directory is the URL of a directory.
func Directory(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// Path is the directory of a bucket that is one; ok is false for any other.
func Path(raw string) (dir string, ok bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "file" {
		return "", false
	}
	return u.Path, true
}

// Attributes is the file beside a directory's file that keeps its content type.
func Attributes(file string) string { return file + ".attrs" }

// Open opens the bucket; a directory is made (0700) if it is missing. S3 is not
// spoken to: its credentials come from the environment, as everywhere in AWS.
func Open(_ context.Context, raw string) (*Bucket, error) {
	if err := Check(raw); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	var files store
	if u.Scheme == "file" {
		files, err = directory{u.Path}, os.MkdirAll(u.Path, 0o700)
	} else {
		files, err = openObjects(u)
	}
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	return &Bucket{files: files}, nil
}

// Write stores a file under the key. When it fails, the file is not there. The
// same content under the same key may be written twice, at once too.
func (b *Bucket) Write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error {
	if err := b.files.write(ctx, key, contentType, about, content); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

// Read gives length bytes from offset on. A file that is not there is
// fs.ErrNotExist.
func (b *Bucket) Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := b.files.read(ctx, key, offset, length)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return r, nil
}

// Size is the size of a file in bytes. A file that is not there is fs.ErrNotExist.
func (b *Bucket) Size(ctx context.Context, key string) (int64, error) {
	size, err := b.files.size(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("look at %s: %w", key, err)
	}
	return size, nil
}

// Each calls see for the key of every file.
func (b *Bucket) Each(ctx context.Context, see func(key string) error) error {
	if err := b.files.each(ctx, see); err != nil {
		return fmt.Errorf("list the bucket: %w", err)
	}
	return nil
}

// Delete removes a file; one that is not there is as good as removed.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	if err := b.files.remove(ctx, key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// Erase deletes every file in the folder (a key's first elements, without a slash at
// their end), and gives their number. A file that is still being written goes too: its
// write fails.
func (b *Bucket) Erase(ctx context.Context, folder string) (files int, err error) {
	if files, err = b.files.erase(ctx, folder); err != nil {
		return files, fmt.Errorf("erase %s: %w", folder, err)
	}
	return files, nil
}

// Room is the free space of the bucket's disk for this process, and the disk's size, in
// bytes. total is 0 for a bucket that no disk of this machine bounds.
func (b *Bucket) Room() (free, total int64, err error) {
	if free, total, err = b.files.room(); err != nil {
		return 0, 0, fmt.Errorf("measure the disk of the bucket: %w", err)
	}
	return free, total, nil
}

// Reachable says why the bucket cannot be used right now.
func (b *Bucket) Reachable(ctx context.Context) error { return b.files.reachable(ctx) }

// Close releases the resources of the bucket.
func (b *Bucket) Close() error { return b.files.close() }

// Lost says that the file of a piece of evidence is not in its directory, or not whole.
func Lost(file string, size int64) bool {
	info, err := os.Stat(file)
	return err != nil || info.Size() != size
}
