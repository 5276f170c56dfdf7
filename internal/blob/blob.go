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
	"io"
	"net/url"
	"os"
	"path/filepath"
)

// Bucket holds files by their keys. It is safe for concurrent use.
type Bucket interface {
	// Write stores a file under the key. When it fails, which it does when content or ctx
	// fails, the file is not there. The same content under the same key may be written
	// twice, at once too.
	Write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error
	// Read gives length bytes from offset on. A file that is not there is fs.ErrNotExist.
	Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// Size is the size of a file in bytes. A file that is not there is fs.ErrNotExist.
	Size(ctx context.Context, key string) (int64, error)
	// Each calls see for the key of every file.
	Each(ctx context.Context, see func(key string) error) error
	// Delete removes a file; one that is not there is as good as removed.
	Delete(ctx context.Context, key string) error
	// Erase deletes every file in the folder (a key's first elements, without a slash at
	// their end), and gives their number. A file that is still being written goes too: its
	// write fails.
	Erase(ctx context.Context, folder string) (files int, err error)
	// Room is the free space of the bucket's disk for this process, and the disk's size, in
	// bytes. total is 0 for a bucket that no disk of this machine bounds.
	Room() (free, total int64, err error)
	// Reachable says why the bucket cannot be used right now.
	Reachable(ctx context.Context) error
	// Close releases the resources of the bucket.
	Close() error
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
func Open(_ context.Context, raw string) (Bucket, error) {
	if err := Check(raw); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "file" {
		return directory{u.Path}, os.MkdirAll(u.Path, 0o700)
	}
	return openObjects(u)
}

// Lost says that the file of a piece of evidence is not in its directory, or not whole.
func Lost(file string, size int64) bool {
	info, err := os.Stat(file)
	return err != nil || info.Size() != size
}
