package vault

import (
	"os"
	"path/filepath"
	"testing"

	"humanqa/internal/testing/must"
)

// Kubernetes mounts a secret for the user of a container as root's, with the mode 0440.
func TestAKeyFileOfRootMayBeReadByTheServicesGroup(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("it makes files of root")
	}
	const service = 10001
	for mode, want := range map[os.FileMode]bool{0o440: true, 0o640: true, 0o444: false, 0o460: false, 0o644: false} {
		path := filepath.Join(t.TempDir(), "master.json")
		must.NoError(t, os.WriteFile(path, nil, 0o600))
		must.NoError(t, os.Chmod(path, mode))
		info, err := os.Stat(path)
		must.NoError(t, err)
		if got := lent(info, service); got != want {
			t.Errorf("%04o of root is taken: %t", mode, got)
		}
		if lent(info, 0) {
			t.Errorf("%04o is taken by root", mode)
		}
		must.NoError(t, os.Chown(path, service, service))
		if info, err = os.Stat(path); err != nil || lent(info, service) {
			t.Errorf("%04o of the service's own file is taken, %v", mode, err)
		}
	}
}
