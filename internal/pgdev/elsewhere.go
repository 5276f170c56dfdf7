package pgdev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A cluster that is not in its data directory is easily forgotten when one
// of the two is copied or moved. So each says where the other is.
const (
	elsewhereNote = "DATABASE-IS-ELSEWHERE.txt" // in the data directory
	homeNote      = "README.txt"                // in the home
)

// leaveNotes writes both, at every start: directories are moved. Later starts find the home by
// the link.
func (h Home) leaveNotes(dir, link string) error {
	if err := os.Symlink(h.dir, link); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("link the cluster into the data directory: %w", err)
	}
	for _, path := range []string{filepath.Join(dir, elsewhereNote), filepath.Join(h.dir, homeNote)} {
		if err := writeFilled(path, map[string]any{"Home": h.dir, "Dir": dir}, 0o600); err != nil {
			return fmt.Errorf("say where the database is: %w", err)
		}
	}
	return nil
}

// lost says that the link leads nowhere. A fresh start, as without a link, would lose
// everything without an error.
func lost(link string) error {
	to, err := os.Readlink(link)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("locate the cluster: %w", err)
	}
	return fmt.Errorf("the database of this data directory is gone: %s leads to %s: put that back, "+
		"restore a backup into another directory, or remove the link to start over", link, to)
}
