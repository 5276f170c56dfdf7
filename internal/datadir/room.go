package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Places are the folders whose disks the data fill: the data directory, and the embedded
// Postgres where it lies elsewhere.
func Places(dir string) map[string]string {
	places := map[string]string{"data": dir}
	if elsewhere, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres")); err == nil {
		places["postgres"] = elsewhere
	}
	return places
}

// Room is the free space of the disk of a folder, and the disk's size, in bytes. A folder
// that is not there yet is on the disk of its parent.
func Room(place string) (free, total int64, err error) {
	var disk unix.Statfs_t
	err = unix.Statfs(place, &disk)
	for errors.Is(err, fs.ErrNotExist) && place != filepath.Dir(place) {
		place = filepath.Dir(place)
		err = unix.Statfs(place, &disk)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("measure the disk of %s: %w", place, err)
	}
	size := int64(disk.Bsize) //nolint:unconvert // the type differs by system
	return int64(disk.Bavail) * size, int64(disk.Blocks) * size, nil
}
