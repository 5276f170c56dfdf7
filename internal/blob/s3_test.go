package blob

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// s3 speaks as much of S3 as a bucket of ours needs.
type s3 struct {
	mu      sync.Mutex
	objects map[string]object
}

type object struct {
	content string
	header  http.Header
}

func (s *s3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, found := s.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodPut && !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-"):
		content, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.objects[r.URL.Path] = object{string(content), r.Header.Clone()}
		w.Header().Set("ETag", `"1"`)
	case r.Method == http.MethodDelete && found:
		delete(s.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case found:
		w.Header().Set("Content-Type", o.header.Get("Content-Type"))
		w.Header().Set("ETag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(o.content))
	case r.URL.Path == "/evidence" || r.URL.Path == "/evidence/": // is there anything?
		_, _ = io.WriteString(w, `<ListBucketResult><Name>evidence</Name></ListBucketResult>`)
	default:
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusNotFound)
		if strings.HasPrefix(r.URL.Path, "/evidence/") {
			_, _ = fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
		} else {
			_, _ = fmt.Fprint(w, `<Error><Code>NoSuchBucket</Code></Error>`)
		}
	}
}

func TestABucketThatSpeaksS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	store := &s3{objects: map[string]object{}}
	server := httptest.NewServer(store)
	defer server.Close()
	at := func(name string) *Bucket {
		b, err := Open(t.Context(), "s3://"+name+"?region=eu-central-1&use_path_style=true&endpoint="+url.QueryEscape(server.URL))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	b := at("evidence")
	if err := b.Reachable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := at("elsewhere").Reachable(t.Context()); err == nil {
		t.Error("a bucket that is not there can be reached")
	}
	if err := b.Write(t.Context(), "acc/j1/one", "image/png", map[string]string{"job": "j1"}, strings.NewReader("0123456789")); err != nil {
		t.Fatal(err)
	}
	kept := store.objects["/evidence/acc/j1/one"]
	if kept.header.Get("Content-Type") != "image/png" || kept.header.Get("X-Amz-Meta-Job") != "j1" {
		t.Errorf("the bucket was told %v", kept.header)
	}
	if got := read(t, b, "acc/j1/one", 3, 4); got != "3456" {
		t.Errorf("got %q", got)
	}
	err := b.Write(t.Context(), "acc/j1/two", "image/png", nil, brokenReader{strings.NewReader("0123456789")})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Read(t.Context(), "acc/j1/two", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an upload that broke off left %v", err)
	}
	if err := b.Delete(t.Context(), "acc/j1/one"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(t.Context(), "acc/j1/one", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := b.Delete(t.Context(), "acc/j1/one"); err != nil {
		t.Errorf("got %v", err)
	}
}
