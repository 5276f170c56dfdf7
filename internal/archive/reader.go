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
)

// maxManifest bounds the manifest in memory: some millions of entries.
const maxManifest = 1 << 30

// Reader is an archive that is whole.
type Reader struct {
	Manifest

	zip *zip.ReadCloser
}

// Open reads an archive to its end and refuses, by its name, one that is not
// as it was written.
func Open(path string) (*Reader, error) {
	if err := recognize(path); err != nil {
		return nil, err
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		// The directory of a zip is at its end.
		return nil, fmt.Errorf("%s is a backup that was cut off: use another (%w)", path, err)
	}
	r := &Reader{zip: z}
	if err := r.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is a backup that cannot be used: %w", path, err), r.Close())
	}
	return r, nil
}

// recognize looks at how the file begins: with the header of the first entry.
func recognize(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open the backup: %w", err)
	}
	defer func() { _ = f.Close() }() // it is only read
	const header = 30                // before the name
	start := make([]byte, header+len(magic))
	if _, err := io.ReadFull(f, start); err != nil || string(start[:4]) != "PK\x03\x04" || string(start[header:]) != magic {
		return fmt.Errorf("%s is no backup of humanqa", path)
	}
	return nil
}

func (r *Reader) check() error {
	err := r.Read(manifestName, func(from io.Reader) error {
		return json.NewDecoder(io.LimitReader(from, maxManifest)).Decode(&r.Manifest)
	})
	switch {
	case err != nil:
		return err
	case r.Format != format:
		return fmt.Errorf("its format is %d, this binary reads %d: use the binary that made it, %s", r.Format, format, r.By)
	case len(r.zip.File) != len(r.Entries)+2:
		return errors.New("it holds other files than its manifest says")
	}
	names := map[string]bool{magic: true, manifestName: true}
	for _, e := range r.Entries {
		if names[e.Name] || !fs.ValidPath(e.Name) {
			return fmt.Errorf("%q is no name of an entry", e.Name)
		}
		names[e.Name] = true
		if err := r.verify(e); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) verify(e Entry) error {
	sum := sha256.New()
	var size int64
	err := r.Read(e.Name, func(from io.Reader) (err error) {
		// One byte more than it should be is enough to know.
		size, err = io.Copy(sum, io.LimitReader(from, e.Size+1))
		return err
	})
	if err != nil {
		return err
	}
	if size != e.Size || hex.EncodeToString(sum.Sum(nil)) != e.SHA256 {
		return fmt.Errorf("%s is not as it was written", e.Name)
	}
	return nil
}

// Read gives an entry's content to use. One that does not exist is
// fs.ErrNotExist.
func (r *Reader) Read(name string, use func(io.Reader) error) error {
	f, err := r.zip.Open(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := errors.Join(use(f), f.Close()); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// Close gives the file back.
func (r *Reader) Close() error { return r.zip.Close() }
