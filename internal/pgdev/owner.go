package pgdev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// owner is the user the server runs as.
type owner struct {
	uid, gid int
	switched bool // we are root, and the owner is not
}

// currentOwner is ourselves, or an unprivileged user when we are root:
// postgres where the packages made it, else the user nobody.
func currentOwner() (owner, error) {
	if os.Getuid() != 0 {
		return owner{uid: os.Getuid(), gid: os.Getgid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return owner{}, fmt.Errorf("look up user %s: %w", name, err)
		}
		return owner{uid: uid, gid: gid, switched: true}, nil
	}
	return owner{}, errors.New("postgres does not run as root and there is no user postgres or nobody: create one")
}

// keeping is the user who already owns the cluster in the home, if we are root: a
// command that root runs does not take a user's cluster away.
func (o owner) keeping(homeDir string) owner {
	info, err := os.Stat(filepath.Join(homeDir, "data"))
	if err != nil || !o.switched {
		return o
	}
	if uid, gid := fileOwner(info); uid > 0 {
		o.uid, o.gid = uid, gid
	}
	return o
}

// procAttr runs a child as the owner, and out of the terminal's process group (Ctrl-C is
// ours to handle).
func (o owner) procAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if o.switched {
		attr.Credential = &syscall.Credential{Uid: uint32(o.uid), Gid: uint32(o.gid)}
	}
	return attr
}

// canReach says whether the owner may pass through every directory of an absolute
// path. Access lists are not consulted: a wrong "no" costs nothing.
func (o owner) canReach(path string) bool {
	if !o.switched {
		return true
	}
	for ; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			return false
		}
		uid, gid := fileOwner(info)
		pass := fs.FileMode(0o001)
		switch {
		case uid == o.uid:
			pass = 0o100
		case gid == o.gid:
			pass = 0o010
		}
		if info.Mode().Perm()&pass == 0 {
			return false
		}
		if path == filepath.Dir(path) {
			return true
		}
	}
}

func fileOwner(info fs.FileInfo) (uid, gid int) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, -1
	}
	return int(st.Uid), int(st.Gid)
}

func modTime(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
