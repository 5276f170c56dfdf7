package pgtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/internal/testing/must"
)

// other starts another test binary with a build cache of its own. It starts a server, and
// ends without an error; said is its standard error.
func other(t *testing.T, cache string) (said func() string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheURLReachesTheSameDatabase$")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HUMANQA_") })
	cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(cache, "go-build"))
	var out strings.Builder
	cmd.Stderr = &out
	must.NoError(t, cmd.Start())
	return func() string {
		t.Helper()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the other binary: %v", err)
		}
		return out.String()
	}
}

func TestBinariesThatStartTogetherMakeTheImageOnce(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	first, second := other(t, cache), other(t, cache)
	if said := first() + second(); said != "" {
		t.Errorf("they say %q", said)
	}
	images := func() []string {
		found, err := filepath.Glob(filepath.Join(cache, "humanqa-test", "postgres-*"))
		must.NoError(t, err)
		return found
	}
	made := images()
	if len(made) != 1 {
		t.Fatalf("the images are %v", made)
	}
	before, err := os.Stat(filepath.Join(made[0], "PG_VERSION"))
	must.NoError(t, err)

	half, unused := made[0]+"0.new", made[0]+"1"
	must.NoError(t, os.Mkdir(half, 0o700))
	must.NoError(t, os.Mkdir(unused, 0o700))
	long := time.Now().Add(-8 * 24 * time.Hour)
	for _, path := range []string{unused, made[0]} {
		must.NoError(t, os.Chtimes(path, long, long))
	}
	if said := other(t, cache)(); said != "" {
		t.Errorf("it says %q", said)
	}
	if after := images(); !slices.Equal(after, made) {
		t.Errorf("the images are %v, want %v", after, made)
	}
	if after, err := os.Stat(filepath.Join(made[0], "PG_VERSION")); err != nil || !os.SameFile(before, after) {
		t.Errorf("the image was made anew: %v", err)
	}
}

func TestABinaryThatCanKeepNoImageMakesItsCluster(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must.NoError(t, os.WriteFile(file, nil, 0o600))
	if said := other(t, file)(); !strings.Contains(said, "there is no image") {
		t.Errorf("it says %q", said)
	}
}
