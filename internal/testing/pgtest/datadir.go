package pgtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgimage"
)

// NewDataDir names a data directory that does not exist yet. The end of the test
// removes it, with the cluster that a service makes for it.
func NewDataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hq") //nolint:usetesting // a unix socket's path has to be short
	must.NoError(t, err)
	data := filepath.Join(dir, "data")
	t.Cleanup(func() {
		if err := pgimage.Remove(context.Background(), data); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	return data
}

// Plant makes a data directory of NewDataDir with a migrated cluster, so that the service
// that starts on it need not make one. An existing directory stays as it is. All clusters that
// are made so look like one server (pgimage): where a test needs two that differ, the
// service makes one.
func Plant(t testing.TB, dir string) {
	t.Helper()
	image, err := image()
	if err != nil {
		return // the service makes its cluster
	}
	if err := os.Mkdir(dir, 0o700); os.IsExist(err) {
		return
	}
	must.NoError(t, pgimage.Plant(t.Context(), dir, image))
}
