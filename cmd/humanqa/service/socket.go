package service

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxSocketPath is the longest path of a unix socket that every system takes.
const maxSocketPath = 103

// SocketPath is where the embedded node listens: in the data directory, or in
// a private directory with a short name where that path is too long. Every
// process derives the same path.
func SocketPath(dataDir string) string {
	path := filepath.Join(dataDir, "eventstore.sock")
	if len(path) <= maxSocketPath {
		return path
	}
	sum := sha256.Sum256([]byte(dataDir))
	name := "humanqa-" + strconv.Itoa(os.Getuid()) + "-" + hex.EncodeToString(sum[:8])
	return filepath.Join("/tmp", name, "eventstore.sock")
}

// makeSocketPath also makes the directory. In /tmp another user may have made it first:
// that one is refused.
func makeSocketPath(dataDir string) (string, error) {
	path := SocketPath(dataDir)
	dir := filepath.Dir(path)
	if dir == dataDir {
		return path, nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("create the socket directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("create the socket directory: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || int(owner.Uid) != os.Getuid() {
		return "", fmt.Errorf("socket directory %s belongs to another user: remove it, or set HUMANQA_DATA_DIR to a shorter path", dir)
	}
	return path, nil
}
