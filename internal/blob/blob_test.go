package blob

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"humanqa/internal/testing/must"
)

func open(t *testing.T) (Bucket, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data dir", "evidence")
	b, err := Open(t.Context(), Directory(dir))
	must.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b, dir
}

func read(t *testing.T, b Bucket, key string, offset, length int64) string {
	t.Helper()
	r, err := b.Read(t.Context(), key, offset, length)
	must.NoError(t, err)
	defer func() { _ = r.Close() }()
	all, err := io.ReadAll(r)
	must.NoError(t, err)
	return string(all)
}

func TestADirectoryHoldsFilesForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	b, dir := open(t)
	must.NoError(t, b.Reachable(t.Context()))
	about := map[string]string{"job": "j1"}
	must.NoError(t, b.Write(t.Context(), "acc/j1/one", "image/png", about, strings.NewReader("0123456789")))
	if got := read(t, b, "acc/j1/one", 0, 10); got != "0123456789" {
		t.Errorf("got %q", got)
	}
	if got := read(t, b, "acc/j1/one", 3, 4); got != "3456" {
		t.Errorf("got %q", got)
	}
	if size, err := b.Size(t.Context(), "acc/j1/one"); size != 10 || err != nil {
		t.Errorf("its size is %d, %v", size, err)
	}
	equalKeys(t, b, "acc/j1/one")
	beside, err := os.ReadFile(Attributes(filepath.Join(dir, "acc/j1/one")))
	if string(beside) != `{"user.content_type":"image/png","user.metadata":{"job":"j1"}}`+"\n" {
		t.Errorf("beside it stands %s, %v", beside, err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		// What the directories shield need not be shielded again.
		if err == nil && d.IsDir() && info.Mode().Perm() != 0o700 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		return err
	})
	must.NoError(t, err)
}

// equalKeys lists the bucket.
func equalKeys(t *testing.T, b Bucket, want ...string) {
	t.Helper()
	var keys []string
	must.NoError(t, b.Each(t.Context(), func(key string) error {
		keys = append(keys, key)
		return nil
	}))
	if !slices.Equal(keys, want) {
		t.Errorf("the bucket has %v", keys)
	}
}

func TestWhatIsNotThereSaysSo(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	if _, err := b.Size(t.Context(), "acc/j1/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Read(t.Context(), "acc/j1/none", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := b.Delete(t.Context(), "acc/j1/none"); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestNoKeyLeadsOutOfADirectory(t *testing.T) {
	t.Parallel()
	b, dir := open(t)
	outside := filepath.Join(filepath.Dir(dir), "outside")
	must.NoError(t, errors.Join(os.Mkdir(outside, 0o700), os.Symlink(outside, filepath.Join(dir, "link"))))
	for _, key := range []string{"", ".", "..", "../outside/x", "a/../../outside/x", "/etc/passwd", "a//b", "a/", "link/x", "a/b.attrs"} {
		if err := b.Write(t.Context(), key, "image/png", nil, strings.NewReader("x")); err == nil {
			t.Errorf("%q was written", key)
		}
		if r, err := b.Read(t.Context(), key, 0, 1); err == nil {
			t.Errorf("%q was read", key)
			_ = r.Close()
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("%v stands outside, %v", left, err)
	}
}

// Earlier versions wrote more into the attributes, or none.
func TestADirectoryOfAnEarlierVersionIsRead(t *testing.T) {
	t.Parallel()
	b, dir := open(t)
	at := filepath.Join(dir, "acc", "j1")
	older := `{"user.cache_control":"","user.content_disposition":"","user.content_encoding":"","user.content_language":"",` +
		`"user.content_type":"image/png","user.metadata":{"job":"j1"},"md5":"eB5eJF1ptWaXm4bijSPyxw=="}` + "\n"
	err := errors.Join(os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, "one"), []byte("0123456789"), 0o600),
		os.WriteFile(Attributes(filepath.Join(at, "one")), []byte(older), 0o600), os.WriteFile(filepath.Join(at, "two"), []byte("x"), 0o600))
	must.NoError(t, err)
	if got := read(t, b, "acc/j1/one", 3, 4); got != "3456" {
		t.Errorf("got %q", got)
	}
	for _, key := range []string{"acc/j1/one", "acc/j1/two"} {
		if err := b.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(at); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

func TestADeletedFileIsGone(t *testing.T) {
	t.Parallel()
	b, dir := open(t)
	must.NoError(t, b.Write(t.Context(), "acc/j1/one", "image/png", nil, strings.NewReader("x")))
	must.NoError(t, b.Delete(t.Context(), "acc/j1/one"))
	left, err := os.ReadDir(filepath.Join(dir, "acc", "j1"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// brokenReader ends before its end.
type brokenReader struct{ io.Reader }

func (r brokenReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestAnUploadThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	b, dir := open(t)
	err := b.Write(t.Context(), "acc/j1/one", "video/mp4", nil, brokenReader{bytes.NewReader(make([]byte, 1<<20))})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "acc", "j1", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

func TestTheSameFileMayBeWrittenTwiceAtOnce(t *testing.T) {
	t.Parallel()
	b, _ := open(t)
	content := strings.Repeat("x", 1<<20)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			if err := b.Write(t.Context(), "acc/j1/one", "image/png", nil, strings.NewReader(content)); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if got := read(t, b, "acc/j1/one", 0, int64(len(content))); got != content {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestABucketsURL(t *testing.T) {
	t.Parallel()
	for raw, good := range map[string]bool{
		"file:///var/lib/humanqa": true,
		Directory("/a b/?x#y"):    true,
		"s3://evidence?region=eu-central-1&endpoint=http://127.0.0.1:9000&use_path_style=true": true,
		"":                                false,
		"/var/lib/humanqa":                false,
		"file://host/dir":                 false,
		"file:///dir?metadata=skip":       false,
		"file:dir":                        false,
		"s3://":                           false,
		"s3://user:pass@evidence":         false,
		"https://evidence.s3.example.com": false,
		"mem://":                          false,
		"s3://evi\ndence":                 false,
		"s3://evidence":                   true,
		"s3://evidence?region=x&use_path_style=pass":               false,
		"s3://evidence?region=x&kmskeyid=pass":                     false,
		"s3://evidence?region=x&endpoint=minio:9000":               false,
		"s3://evidence?region=x&endpoint=http://me:pass@minio":     false,
		"s3://evidence?region=x&endpoint=http://minio:9000/a/path": false,
		"s3://evidence/a/path?region=x":                            false,
	} {
		err := Check(raw)
		if (err == nil) != good {
			t.Errorf("%q: %v", raw, err)
		}
		if err != nil && strings.Contains(err.Error(), "pass") {
			t.Errorf("%q is quoted: %v", raw, err)
		}
	}
}

// erasesAFolder holds for both kinds: an account's files go, and no other's.
func erasesAFolder(t *testing.T, b Bucket) {
	t.Helper()
	for _, key := range []string{"acc/j1/one", "acc/j1/two", "acc/j2/one", "account/j1/one"} {
		must.NoError(t, b.Write(t.Context(), key, "image/png", nil, strings.NewReader("0123456789")))
	}
	if files, err := b.Erase(t.Context(), "acc"); files < 3 || err != nil {
		t.Errorf("%d files were erased, %v", files, err)
	}
	if files, err := b.Erase(t.Context(), "acc"); files != 0 || err != nil {
		t.Errorf("%d files were erased again, %v", files, err)
	}
	for _, key := range []string{"acc/j1/one", "acc/j1/two", "acc/j2/one"} {
		if _, err := b.Read(t.Context(), key, 0, 1); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v", key, err)
		}
	}
	if got := read(t, b, "account/j1/one", 0, 10); got != "0123456789" {
		t.Errorf("got %q", got)
	}
}

// What is still being written when its folder is erased comes to nothing.
func TestADirectorysFolderIsErased(t *testing.T) {
	t.Parallel()
	b, dir := open(t)
	erasesAFolder(t, b)
	content, feed := io.Pipe()
	wrote := make(chan error, 1)
	go func() { wrote <- b.Write(t.Context(), "acc/j1/late", "image/png", nil, content) }()
	_, err := io.WriteString(feed, "01234")
	must.NoError(t, err)
	if files, err := b.Erase(t.Context(), "acc"); files != 1 || err != nil {
		t.Errorf("%d files were erased, %v", files, err)
	}
	must.NoError(t, feed.Close())
	if err := <-wrote; !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the write ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "acc")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
	for _, key := range []string{"..", "/", "", "acc/../.."} {
		if _, err := b.Erase(t.Context(), key); err == nil {
			t.Errorf("%q was erased", key)
		}
	}
	if free, total, err := b.Room(); free <= 0 || total < free || err != nil {
		t.Errorf("%d of %d bytes are free, %v", free, total, err)
	}
}
