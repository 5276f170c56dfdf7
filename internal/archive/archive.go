// Package archive is the file of a backup: a zip of the database's dump, the keyset,
// the evidence and a manifest. unzip opens it too.
//
// The manifest is written last and holds the size and the SHA-256 of every entry. So a
// restore recognises a file that was cut off, changed or mixed up before it restores
// anything. An archive appears under its name whole or not at all: it is written beside
// it, as <name>.partial, and renamed. The next backup to the same name overwrites the
// rest of a crash.
package archive

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"humanqa/internal/wholefile"
)

const (
	// format is raised when an older binary could misread a file of a newer one.
	format = 1
	// magic is the first entry: it tells an archive that was cut off from a file
	// that never was one.
	magic        = "humanqa-backup"
	manifestName = "manifest.json"
	partial      = ".partial"
)

// Manifest says what an archive holds.
type Manifest struct {
	Format int       `json:"format"`
	Made   time.Time `json:"made"` // when the database's snapshot was taken
	By     string    `json:"by"`   // the version that made it
	Schema int64     `json:"schema"`
	Events int64     `json:"events"` // of the log, in the snapshot
	// EvidenceAt is the bucket that the evidence is in; empty: in here.
	EvidenceAt string `json:"evidenceAt,omitempty"`
	// Missing is evidence that the database knows and the bucket had lost.
	Missing []string `json:"missing,omitempty"`
	Entries []Entry  `json:"entries"`
}

// Entry is a file of the archive.
type Entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Writer makes an archive. It is for one goroutine.
type Writer struct {
	path    string
	file    *os.File
	zip     *zip.Writer
	entries []Entry
}

// Create begins an archive. The file of that name must not exist: a backup
// replaces nothing.
func Create(path string) (*Writer, error) {
	if err := vacant(path); err != nil {
		return nil, err
	}
	// The rest of a crash is written over. A link that was planted there is refused.
	f, err := os.OpenFile(path+partial, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link: remove it, or name another file", path+partial)
	}
	if err != nil {
		return nil, fmt.Errorf("create the backup: %w", err)
	}
	if !owned(f) {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("another backup to %s is under way: wait for it, or name another file", path)
	}
	w := &Writer{path: path, file: f, zip: zip.NewWriter(f)}
	err = errors.Join(f.Chmod(0o600), f.Truncate(0))
	if err == nil {
		err = w.put(magic, zip.Store, func(to io.Writer) error {
			_, err := fmt.Fprintf(to, "%d\n", format)
			return err
		})
	}
	if err != nil {
		w.Abort()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return w, nil
}

// owned takes the unfinished file. Two writers would mix their halves. A file that
// another process finished in between has the name of a backup by now.
func owned(f *os.File) bool {
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	locked, err := f.Stat()
	named, nerr := os.Lstat(f.Name())
	return err == nil && nerr == nil && os.SameFile(locked, named)
}

func vacant(path string) error {
	switch _, err := os.Lstat(path); {
	case err == nil:
		return fmt.Errorf("%s exists already: name another file", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("create the backup: %w", err)
	}
	return nil
}

// Add writes an entry, which content fills.
func (w *Writer) Add(name string, content func(io.Writer) error) error {
	sum, size := sha256.New(), counter(0)
	err := w.put(name, zip.Store, func(to io.Writer) error { return content(io.MultiWriter(to, sum, &size)) })
	if err != nil {
		return fmt.Errorf("write %s of %s: %w", name, w.path, err)
	}
	w.entries = append(w.entries, Entry{Name: name, Size: int64(size), SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// put does not compress: the dump is, and so are pictures and videos.
func (w *Writer) put(name string, method uint16, content func(io.Writer) error) error {
	to, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method})
	if err != nil {
		return err
	}
	return content(to)
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Finish completes the archive, on the disk and under its name. It returns its
// size in bytes.
func (w *Writer) Finish(m Manifest) (int64, error) {
	m.Format, m.Entries = format, w.entries
	err := w.put(manifestName, zip.Deflate, func(to io.Writer) error { return json.NewEncoder(to).Encode(m) })
	if err == nil {
		err = errors.Join(w.zip.Close(), w.file.Sync())
	}
	var size int64
	if err == nil {
		size, err = w.file.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		err = vacant(w.path)
	}
	if err == nil {
		err = os.Rename(w.path+partial, w.path)
	}
	if err != nil {
		w.Abort()
		return 0, fmt.Errorf("write %s: %w", w.path, err)
	}
	_ = w.file.Close() // it was synced
	return size, wholefile.SyncDir(filepath.Dir(w.path))
}

// Abort gives up: nothing is left. After Finish it does nothing.
func (w *Writer) Abort() {
	// Its own half only: after a rename the name is free for another's.
	if err := w.file.Close(); err == nil {
		_ = os.Remove(w.path + partial) // the next backup writes over the rest
	}
}
