package pgdev_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"humanqa/internal/datadir"
	"humanqa/internal/pgdev"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgimage"
)

// saved is an image with one row.
func saved(t *testing.T) (image string) {
	t.Helper()
	s := start(t, dataDir(t, t.TempDir()))
	write(t, s, "of the image")
	image = filepath.Join(t.TempDir(), "image")
	must.NoError(t, os.Mkdir(image+".new", 0o700)) // what a crash left
	must.NoError(t, pgimage.Save(t.Context(), s, image))
	if entries, err := os.ReadDir(filepath.Dir(image)); err != nil || len(entries) != 1 {
		t.Errorf("beside the image: %v, %v", entries, err)
	}
	if info, err := os.Stat(image); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("the image: %v, %v", info.Mode(), err)
	}
	return image
}

func TestClustersThatAreMadeOfAnImageAreApart(t *testing.T) {
	t.Parallel()
	image := saved(t)
	of := func(dir string) *pgdev.Server {
		must.NoError(t, pgimage.Plant(t.Context(), dir, image))
		return start(t, dir)
	}
	first := dataDir(t, t.TempDir())
	a, b := of(first), of(dataDir(t, t.TempDir()))
	write(t, a, "of the first")
	wantRows(t, a, "of the image", "of the first")
	wantRows(t, b, "of the image")
	for _, s := range []*pgdev.Server{a, b} { // each has a password of its own
		if err := ping(t, s.TCPDSN(pgdev.Database)); err != nil {
			t.Error(err)
		}
	}
	if a.TCPDSN("") == b.TCPDSN("") {
		t.Error("two copies have one password")
	}
	stop(t, a)
	wantRows(t, of(first), "of the image", "of the first") // it is made once
}

func TestAPlantedClusterIsFoundUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	image := saved(t)
	dir := dataDir(t, t.TempDir())
	must.NoError(t, pgimage.Remove(t.Context(), dir)) // there is none
	must.NoError(t, pgimage.Plant(t.Context(), dir, image))
	if !pgdev.Exists(dir) {
		t.Fatal("there is no cluster")
	}
	s := start(t, dir)
	wantRows(t, s, "of the image")
	write(t, s, "of the copy")
	if err := pgimage.Remove(t.Context(), dir); !errors.Is(err, datadir.ErrInUse) {
		t.Errorf("a removal while the server runs: %v", err)
	}
	stop(t, s)
	must.NoError(t, pgimage.Plant(t.Context(), dir, image)) // it has one
	s = start(t, dir)
	wantRows(t, s, "of the image", "of the copy")
	stop(t, s)
	must.NoError(t, pgimage.Remove(t.Context(), dir))
	if _, err := os.Stat(s.Home()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the home: %v", err)
	}
	wantRows(t, start(t, dir)) // initdb's
}

func TestAnImageThatIsNoClusterIsRefused(t *testing.T) {
	t.Parallel()
	image := t.TempDir()
	must.NoError(t, os.Symlink("/etc", filepath.Join(image, "base")))
	err := pgimage.Plant(t.Context(), dataDir(t, t.TempDir()), image)
	if err == nil || !strings.Contains(err.Error(), "neither a file nor a directory") {
		t.Errorf("Plant = %v", err)
	}
}

func TestTheKindOfAnImageNamesTheVersion(t *testing.T) {
	t.Parallel()
	kind, err := pgimage.Kind(t.Context())
	if err != nil || !regexp.MustCompile(`^postgres-[0-9.]+-[0-9a-f]+$`).MatchString(kind) {
		t.Errorf("kind = %q, %v", kind, err)
	}
}
