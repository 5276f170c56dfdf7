package vault

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"humanqa/internal/wholefile"
)

// master wraps and unwraps data keys; nothing else of this package sees the
// master keyset.
type master struct {
	aead    tink.AEAD
	primary uint32            // the id of the key that is used
	macs    map[uint32][]byte // derived from each key, by its id
}

// openMaster reads the master keyset: a tink keyset as JSON, in cleartext,
// because this file is the root of trust. Its mode (0600, or lent by root, checked)
// protects it, and it is neither in the database nor in a dump of it. Its loss is the
// loss of every sealed secret: back it up apart from the database.
//
// A missing file is made only if mayCreate: with data keys in the database a
// fresh keyset could open none of them.
func openMaster(path string, mayCreate bool) (*master, error) {
	m, err := readMaster(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	if !mayCreate {
		return nil, fmt.Errorf("master key file %s is missing, but the database holds keys made with it: "+
			"put it back, or name it by HUMANQA_MASTER_KEY_FILE", path)
	}
	if err := createMaster(path); err != nil {
		return nil, fmt.Errorf("create master key file %s: %w", path, err)
	}
	return readMaster(path)
}

func readMaster(path string) (*master, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open master key file: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open master key file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("master key file %s is not a regular file: name one by HUMANQA_MASTER_KEY_FILE", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && !lent(info, os.Geteuid()) {
		return nil, fmt.Errorf("master key file %s has mode %04o, readable by others: run chmod 600 %s", path, mode, path)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read master key file: %w", err)
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(text)))
	if err != nil {
		// The parser's error may quote the file, so it is left out.
		return nil, fmt.Errorf("master key file %s holds no tink keyset: restore it from its backup", path)
	}
	primitive, err := aead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("master key file %s holds no encryption keyset: restore it from its backup", path)
	}
	m := &master{aead: primitive}
	if m.primary, m.macs, err = deriveMACs(text); err != nil {
		return nil, fmt.Errorf("master key file %s: %w", path, err)
	}
	return m, nil
}

// lent says that root let one group read the file, to which this process belongs. A secret that
// Kubernetes mounts for a user other than root has no other form.
func lent(info fs.FileInfo, uid int) bool {
	file, ok := info.Sys().(*syscall.Stat_t)
	return ok && file.Uid == 0 && uid != 0 && info.Mode().Perm()&0o037 == 0
}

// deriveMACs makes a MAC key of each key in a keyset: of the bytes as they stand in the
// file, which every library reads alike.
func deriveMACs(text []byte) (primary uint32, macs map[uint32][]byte, err error) {
	var file struct {
		PrimaryKeyID uint32 `json:"primaryKeyId"`
		Key          []struct {
			KeyID   uint32 `json:"keyId"`
			KeyData struct {
				Value []byte `json:"value"`
			} `json:"keyData"`
		} `json:"key"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return 0, nil, errors.New("it holds no tink keyset as JSON") // the parser's error may quote the file
	}
	macs = make(map[uint32][]byte, len(file.Key))
	for _, k := range file.Key {
		if macs[k.KeyID], err = hkdf.Key(sha256.New, k.KeyData.Value, nil, "humanqa event mac", sha256.Size); err != nil {
			return 0, nil, fmt.Errorf("derive the key of events' MACs: %w", err)
		}
	}
	return file.PrimaryKeyID, macs, nil
}

// createMaster writes a fresh keyset beside path and links it there, so the file
// appears whole or not at all. Of two processes at their first start one wins, and
// both go on with its file. A crash leaves at most a stray ".master-*" file that
// nothing reads.
func createMaster(path string) error {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	var content bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&content)); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".master-*") // O_EXCL, 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // the link stays
	_, err = f.Write(content.Bytes())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return wholefile.SyncDir(dir)
}
