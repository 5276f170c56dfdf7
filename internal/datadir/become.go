package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// Become makes this process run as the user to whom the directory belongs, if it runs as
// root: the owner could not use files that root leaves there. A missing directory will
// belong to the owner of its parent. The process stays root if root owns a part of the
// directory. name is the user that the process became; empty: nothing has changed.
func Become(dir string) (name string, err error) {
	if os.Getuid() != 0 {
		return "", nil
	}
	uid, gid, err := ownerOf(dir)
	if err != nil || uid == 0 {
		return "", err
	}
	name, groups := strconv.Itoa(uid), []int{gid}
	if u, err := user.LookupId(name); err == nil {
		name, groups = u.Username, append(groups, groupsOf(u)...)
	}
	if err := errors.Join(syscall.Setgroups(groups), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
		return "", fmt.Errorf("run as %s, to whom data directory %s belongs: %w", name, dir, err)
	}
	return name, nil
}

// ownerOf gives the one user to whom the directory and all that lies in it belong; root
// where they are several. Of a missing one it gives the owner of the nearest directory above.
func ownerOf(dir string) (uid, gid int, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("locate data directory: %w", err)
	}
	there := dir
	uid, gid, err = owns(there)
	for errors.Is(err, fs.ErrNotExist) && there != filepath.Dir(there) {
		there = filepath.Dir(there)
		uid, gid, err = owns(there)
	}
	if err != nil || there != dir {
		return uid, gid, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("look into data directory: %w", err)
	}
	for _, e := range entries {
		if other, _, err := owns(filepath.Join(dir, e.Name())); err != nil || other != uid {
			return 0, 0, err
		}
	}
	return uid, gid, nil
}

func owns(path string) (uid, gid int, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, 0, fmt.Errorf("look at the owner of %s: %w", path, err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, nil
	}
	return int(st.Uid), int(st.Gid), nil
}

func groupsOf(u *user.User) (ids []int) {
	list, _ := u.GroupIds() // without a list of groups their own is enough
	for _, g := range list {
		if id, err := strconv.Atoi(g); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
