package datadir_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"humanqa/internal/datadir"
	"humanqa/internal/testing/must"
)

// becomeEnv makes this binary become the named directory's owner, lock it, leave a file
// there, and say as whom.
const becomeEnv = "DATADIR_TEST_BECOME"

func become(dir string) error {
	name, err := datadir.Become(dir)
	if err != nil {
		return err
	}
	release, err := datadir.Lock(dir)
	if err != nil {
		return err
	}
	defer release()
	fmt.Printf("%q %d", name, os.Getuid())
	return os.WriteFile(filepath.Join(dir, "kept"), nil, 0o600)
}

// What root starts in somebody's directory leaves nothing there that they cannot use.
func TestRootBecomesTheOwnerOfTheDirectory(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return // only root can be somebody else
	}
	const nobody = 65534
	owned := func(path string, uid int) string {
		must.NoError(t, os.MkdirAll(path, 0o755))
		must.NoError(t, os.Chown(path, uid, uid))
		return path
	}
	uidOf := func(path string) int {
		info, err := os.Stat(path)
		must.NoError(t, err)
		return int(info.Sys().(*syscall.Stat_t).Uid)
	}
	top := t.TempDir()
	must.NoError(t, os.Chmod(filepath.Dir(top), 0o755))
	mixed := owned(filepath.Join(top, "mixed"), nobody)
	must.NoError(t, os.WriteFile(filepath.Join(mixed, "keyset"), nil, 0o600))
	for name, c := range map[string]struct {
		dir string
		uid int
	}{
		"somebody's":                      {owned(filepath.Join(top, "theirs"), nobody), nobody},
		"a new one in somebody's":         {filepath.Join(owned(filepath.Join(top, "checkout"), nobody), "new", "data"), nobody},
		"root's":                          {owned(filepath.Join(top, "ours"), 0), 0},
		"somebody's that root has worked": {mixed, 0},
	} {
		for range 2 { // the second time it is as the first has left it
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), becomeEnv+"="+c.dir)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), fmt.Sprint(" ", c.uid)) {
				t.Fatalf("%s: %s, %v", name, out, err)
			}
			for _, path := range []string{c.dir, filepath.Join(c.dir, datadir.LockFile), filepath.Join(c.dir, "kept")} {
				if got := uidOf(path); got != c.uid && path != mixed {
					t.Errorf("%s: %s belongs to %d, want %d", name, path, got, c.uid)
				}
			}
		}
	}
}
