package archive_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"humanqa/internal/archive"
	"humanqa/internal/testing/must"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func create(t *testing.T, path string) *archive.Writer {
	t.Helper()
	w, err := archive.Create(path)
	must.NoError(t, err)
	t.Cleanup(w.Abort)
	return w
}

func names(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must.NoError(t, err)
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

func TestAnArchiveIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.zip")
	// What a crash left, longer than what is written now.
	must.NoError(t, os.WriteFile(path+".partial", bytes.Repeat([]byte("x"), 10_000), 0o644))
	w := create(t, path)
	for _, name := range []string{"one", "deep/er/two"} {
		must.NoError(t, w.Add(name, text("this is "+name)))
	}
	if got := names(t, dir); !reflect.DeepEqual(got, []string{"a.zip.partial"}) {
		t.Errorf("before it is finished there is %v", got)
	}
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	size, err := w.Finish(archive.Manifest{Made: made, By: "v1", Schema: 7, Events: 8, Missing: []string{"m"}})
	must.NoError(t, err)
	if got := names(t, dir); !reflect.DeepEqual(got, []string{"a.zip"}) {
		t.Errorf("there is %v", got)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v, want %d bytes", info, err, size)
	}
	r, err := archive.Open(path)
	must.NoError(t, err)
	defer func() { _ = r.Close() }() // it was only read
	want := archive.Manifest{Format: 1, Made: made, By: "v1", Schema: 7, Events: 8, Missing: []string{"m"}, Entries: r.Entries}
	if !reflect.DeepEqual(r.Manifest, want) || len(r.Entries) != 2 {
		t.Errorf("manifest %+v, want %+v", r.Manifest, want)
	}
	for _, e := range r.Entries {
		err := r.Read(e.Name, func(from io.Reader) error {
			if got, err := io.ReadAll(from); err != nil || string(got) != "this is "+e.Name || e.Size != int64(len(got)) {
				t.Errorf("%+v is %q, %v", e, got, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if err := r.Read("three", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an entry that is not there: %v", err)
	}
}

func TestAnArchiveThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := errors.New("the disk is full")
	w := create(t, filepath.Join(dir, "a.zip"))
	if err := w.Add("one", func(io.Writer) error { return full }); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	w.Abort()
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("there is %v", got)
	}
}

func TestAnArchiveReplacesNothingAndIsWrittenOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.zip")
	first := create(t, path)
	if _, err := archive.Create(path); err == nil || !strings.Contains(err.Error(), "another backup to "+path+" is under way") {
		t.Errorf("a second one at once: %v", err)
	}
	must.NoError(t, os.WriteFile(path, []byte("mine"), 0o600))
	if _, err := first.Finish(archive.Manifest{}); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("over a file that came in between: %v", err)
	}
	if _, err := archive.Create(path); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("over a file: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "mine" {
		t.Errorf("the file is %q, %v", got, err)
	}
}

// Whoever makes an archive by hand gets nothing written outside the place it is
// restored to, and nothing in that the manifest does not tell.
func TestAnArchiveThatWasTamperedWithIsRefused(t *testing.T) {
	t.Parallel()
	const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of nothing
	entry := func(name string) string { return fmt.Sprintf(`{"name":%q,"size":0,"sha256":%q}`, name, sum) }
	for name, c := range map[string]struct {
		manifest string
		files    []string
		want     string
	}{
		"a way out":           {`{"format":1,"entries":[` + entry("../out") + `]}`, []string{"../out"}, `"../out" is no name`},
		"an absolute name":    {`{"format":1,"entries":[` + entry("/etc/passwd") + `]}`, []string{"/etc/passwd"}, "is no name"},
		"one name twice":      {`{"format":1,"entries":[` + entry("a") + "," + entry("a") + `]}`, []string{"a", "a"}, `"a" is no name`},
		"more than is told":   {`{"format":1,"entries":[` + entry("a") + `]}`, []string{"a", "b"}, "other files than its manifest says"},
		"less than is told":   {`{"format":1,"entries":[` + entry("a") + `]}`, nil, "other files than its manifest says"},
		"another sum":         {`{"format":1,"entries":[{"name":"a","size":0,"sha256":"00"}]}`, []string{"a"}, "a is not as it was written"},
		"another size":        {`{"format":1,"entries":[{"name":"a","size":9,"sha256":"` + sum + `"}]}`, []string{"a"}, "a is not as it was written"},
		"a format to come":    {`{"format":2,"by":"v9"}`, nil, "use the binary that made it, v9"},
		"no manifest to read": {`{`, nil, "read manifest.json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			put := func(name, content string) {
				w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
				if err == nil {
					err = text(content)(w)
				}
				must.NoError(t, err)
			}
			put("humanqa-backup", "1\n")
			for _, file := range c.files {
				put(file, "")
			}
			put("manifest.json", c.manifest)
			must.NoError(t, z.Close())
			path := filepath.Join(t.TempDir(), "a.zip")
			must.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
			if _, err := archive.Open(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// Whoever may write to the directory must not choose which file is overwritten.
func TestAnArchiveFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name, precious := filepath.Join(dir, "backup.zip"), filepath.Join(dir, "precious")
	must.NoError(t, os.WriteFile(precious, []byte("precious"), 0o600))
	for link, want := range map[string]string{
		name + ".partial": name + ".partial is a symbolic link: remove it, or name another file",
		name:              name + " exists already: name another file",
	} {
		for _, target := range []string{precious, filepath.Join(dir, "nothing")} {
			must.NoError(t, os.Symlink(target, link))
			if _, err := archive.Create(name); err == nil || err.Error() != want {
				t.Errorf("%s to %s: %v, want %s", link, target, err, want)
			}
			must.NoError(t, os.Remove(link))
		}
	}
	left, err := os.ReadDir(dir)
	if content, rerr := os.ReadFile(precious); err != nil || rerr != nil || string(content) != "precious" || len(left) != 1 {
		t.Errorf("left are %v and %q", left, content)
	}
}
