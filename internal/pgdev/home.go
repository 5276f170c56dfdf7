package pgdev

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/datadir"
	"humanqa/internal/wholefile"
)

const (
	// linkName is the entry of the data directory that is, or points to, the home.
	linkName = "postgres"
	// rootHomes is where homes live that the server's user could not reach
	// inside the data directory.
	rootHomes = "/var/lib/humanqa"
)

// Home is the directory of one cluster and its other files.
type Home struct {
	dir   string // absolute, free of symbolic links
	owner owner
}

// Data is where the cluster is, or will be.
func (h Home) Data() string { return filepath.Join(h.dir, "data") }

// Owner is the user that the server runs as.
func (h Home) Owner() (uid, gid int) { return h.owner.uid, h.owner.gid }

func (h Home) logs() string       { return filepath.Join(h.dir, "log") }
func (h Home) configFile() string { return filepath.Join(h.dir, "postgresql.conf") }
func (h Home) hbaFile() string    { return filepath.Join(h.dir, "pg_hba.conf") }

// OpenHome finds or makes the home of a data directory, locks it, and stops a
// server that outlived its owner.
func OpenHome(ctx context.Context, dir string, log logrus.FieldLogger) (Home, func(), error) {
	dir, err := realPath(dir)
	if err != nil {
		return Home{}, nil, err
	}
	own, err := currentOwner()
	if err != nil {
		return Home{}, nil, err
	}
	link := filepath.Join(dir, linkName)
	h, take := Home{dir: link, owner: own}, Home.take
	switch path, err := filepath.EvalSymlinks(link); {
	case err == nil:
		h = Home{dir: path, owner: own.keeping(path)}
	case !errors.Is(err, fs.ErrNotExist):
		return Home{}, nil, fmt.Errorf("locate the cluster of %s: %w", dir, err)
	default:
		if err := lost(link); err != nil {
			return Home{}, nil, err
		}
		if !own.canReach(dir) {
			h.dir, take = filepath.Join(rootHomes, shortHash(dir)), Home.takeFresh
		}
	}
	release, err := take(h, ctx, dir, log)
	if err == nil && h.dir != link {
		if err = h.leaveNotes(dir, link); err != nil {
			release()
		}
	}
	return h, release, err
}

// take makes the home where it is missing and becomes its only user.
func (h Home) take(ctx context.Context, dir string, log logrus.FieldLogger) (func(), error) {
	// The server's user passes through; it sees only the directories it owns.
	mode := fs.FileMode(0o700)
	if h.owner.switched {
		mode = 0o711
	}
	if err := os.MkdirAll(filepath.Dir(h.dir), 0o755); err != nil {
		return nil, fmt.Errorf("create the parent of the cluster: %w", err)
	}
	if err := os.Mkdir(h.dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("create the cluster's home: %w", err)
	}
	if err := os.Chmod(h.dir, mode); err != nil { // the umask may have changed the mode
		return nil, fmt.Errorf("create the cluster's home: %w", err)
	}
	release, err := datadir.Lock(h.dir)
	if err != nil {
		if inUse, ok := errors.AsType[*datadir.InUseError](err); ok {
			return nil, &datadir.InUseError{Dir: dir, PID: inUse.PID}
		}
		return nil, err
	}
	if err := stopSurvivor(ctx, h.Data(), log); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// takeFresh takes a home that must be empty. A home with a cluster belonged to a data
// directory that was deleted. The deletion asks for a fresh start, but a database is
// never ours to delete, so its home is renamed.
func (h Home) takeFresh(ctx context.Context, dir string, log logrus.FieldLogger) (func(), error) {
	release, err := h.take(ctx, dir, log)
	if err != nil {
		return nil, err
	}
	if h.clusterVersion() == "" {
		return release, nil
	}
	aside := h.dir + ".orphaned-" + time.Now().UTC().Format("20060102T150405.000")
	if err := os.Rename(h.dir, aside); err != nil {
		release()
		return nil, fmt.Errorf("set the cluster of a deleted data directory aside: %w", err)
	}
	release()
	log.WithField("cluster", aside).Warn("kept the database of an earlier data directory at this path: remove it when it is not needed")
	return h.take(ctx, dir, log)
}

// clusterVersion is the major version that made the cluster, "" when there is none.
func (h Home) clusterVersion() string {
	b, err := os.ReadFile(filepath.Join(h.Data(), "PG_VERSION"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// ensurePassword reads or makes the superuser's password. It is written before
// the role gets it, so a crash never leaves an unknown password.
func (h Home) ensurePassword() (string, error) {
	path := h.passwordFile()
	b, err := os.ReadFile(path)
	if err == nil && len(b) > 0 {
		return string(b), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the database password: %w", err)
	}
	password := rand.Text()
	if err := wholefile.Write(path, []byte(password), 0o600); err != nil {
		return "", fmt.Errorf("write the database password: %w", err)
	}
	return password, nil
}

func (h Home) passwordFile() string { return filepath.Join(h.dir, "password") }

// maxSocketDir leaves room for "/.s.PGSQL.65535" in the 103 bytes that every
// supported system accepts as the path of a unix socket.
const maxSocketDir = 103 - len("/.s.PGSQL.65535")

// SocketPath is <home>/run, or a private directory with a short name where that
// path is too long for a socket.
func (h Home) SocketPath() string {
	path := filepath.Join(h.dir, "run")
	if len(path) > maxSocketDir {
		path = filepath.Join("/tmp", "humanqa-"+shortHash(h.dir))
	}
	return path
}

// socketDir makes the directory of the socket.
func (h Home) socketDir() (string, error) {
	path := h.SocketPath()
	if err := h.ownDir(path); err != nil {
		return "", fmt.Errorf("create the socket directory: %w", err)
	}
	return path, nil
}

// ownDir makes a 0700 directory of the server's user. In a shared place like
// /tmp another user may have made it first: that one is refused.
func (h Home) ownDir(path string) error {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		return os.Lchown(path, h.owner.uid, h.owner.gid)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	uid, _ := fileOwner(info)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", path)
	case uid == h.owner.uid:
		return os.Chmod(path, 0o700)
	case uid == os.Getuid(): // a crash came between Mkdir and Lchown
		return os.Lchown(path, h.owner.uid, h.owner.gid)
	default:
		return fmt.Errorf("%s belongs to another user: remove it", path)
	}
}

// realPath resolves a path, because processes are recognized by theirs.
func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("locate data directory: %w", err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("locate data directory: %w", err)
	}
	return resolved, nil
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
