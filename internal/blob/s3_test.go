package blob

import (
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/internal/testing/must"
)

// s3 speaks as much of S3 as a bucket of ours needs.
type s3 struct {
	mu       sync.Mutex
	objects  map[string]object
	parts    map[string]string // of the upload in parts that is under way
	requests []string          // method and query of what wrote
}

type object struct {
	content string
	header  http.Header
}

func (s *s3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, found := s.objects[r.URL.Path]
	query := r.URL.Query()
	if r.Method == http.MethodPut || r.Method == http.MethodPost {
		s.requests = append(s.requests, r.Method+" "+query.Get("partNumber"))
	}
	switch {
	case r.Method == http.MethodPost && query.Has("uploads"):
		s.parts = map[string]string{}
		s.objects["upload "+r.URL.Path] = object{header: r.Header.Clone()}
		_, _ = fmt.Fprint(w, `<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>`)
	case r.Method == http.MethodPut && query.Get("uploadId") == "u1":
		content, _ := io.ReadAll(r.Body)
		sum := md5.Sum(content)
		if r.Header.Get("Content-Md5") != base64.StdEncoding.EncodeToString(sum[:]) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.parts[query.Get("partNumber")] = string(content)
		w.Header().Set("ETag", `"`+query.Get("partNumber")+`"`)
	case r.Method == http.MethodPost && query.Get("uploadId") == "u1":
		var whole strings.Builder
		for n := 1; s.parts[strconv.Itoa(n)] != ""; n++ {
			whole.WriteString(s.parts[strconv.Itoa(n)])
		}
		s.objects[r.URL.Path] = object{whole.String(), s.objects["upload "+r.URL.Path].header}
		s.parts = nil
		_, _ = fmt.Fprint(w, `<CompleteMultipartUploadResult><Bucket>evidence</Bucket><ETag>"1"</ETag></CompleteMultipartUploadResult>`)
	case r.Method == http.MethodDelete && query.Get("uploadId") == "u1":
		s.parts = nil
		w.WriteHeader(http.StatusNoContent)
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
		http.ServeContent(w, r, "", time.Now(), strings.NewReader(o.content))
	case r.URL.Path == "/evidence" || r.URL.Path == "/evidence/": // what is there?
		_, _ = io.WriteString(w, `<ListBucketResult><Name>evidence</Name>`)
		for _, at := range slices.Sorted(maps.Keys(s.objects)) {
			if key := strings.TrimPrefix(at, "/evidence/"); strings.HasPrefix(key, query.Get("prefix")) {
				_, _ = fmt.Fprintf(w, `<Contents><Key>%s</Key></Contents>`, key)
			}
		}
		_, _ = io.WriteString(w, `</ListBucketResult>`)
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
	at := func(name string) Bucket {
		b, err := Open(t.Context(), "s3://"+name+"?region=eu-central-1&use_path_style=true&endpoint="+url.QueryEscape(server.URL))
		must.NoError(t, err)
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	b := at("evidence")
	must.NoError(t, b.Reachable(t.Context()))
	if err := at("elsewhere").Reachable(t.Context()); err == nil {
		t.Error("a bucket that is not there can be reached")
	}
	must.NoError(t, b.Write(t.Context(), "acc/j1/one", "image/png", map[string]string{"job": "j1"}, strings.NewReader("0123456789")))
	kept := store.objects["/evidence/acc/j1/one"]
	if kept.header.Get("Content-Type") != "image/png" || kept.header.Get("X-Amz-Meta-Job") != "j1" {
		t.Errorf("the bucket was told %v", kept.header)
	}
	if size, err := b.Size(t.Context(), "acc/j1/one"); size != 10 || err != nil {
		t.Errorf("its size is %d, %v", size, err)
	}
	if _, err := b.Size(t.Context(), "acc/j1/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not there: %v", err)
	}
	equalKeys(t, b, "acc/j1/one")
	for want, at := range map[string][2]int64{"3456": {3, 4}, "0": {0, 1}, "0123456789": {0, 10}, "9": {9, 1}, "": {0, 0}} {
		if got := read(t, b, "acc/j1/one", at[0], at[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	err := b.Write(t.Context(), "acc/j1/two", "image/png", nil, brokenReader{strings.NewReader("0123456789")})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Read(t.Context(), "acc/j1/two", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an upload that broke off left %v", err)
	}
	must.NoError(t, b.Delete(t.Context(), "acc/j1/one"))
	if _, err := b.Read(t.Context(), "acc/j1/one", 0, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if err := b.Delete(t.Context(), "acc/j1/one"); err != nil {
		t.Errorf("got %v", err)
	}
	erasesAFolder(t, b)
	if free, total, err := b.Room(); free != 0 || total != 0 || err != nil {
		t.Errorf("%d of %d bytes are free, %v", free, total, err)
	}
}

// One that is larger than a part is sent in parts, and is there whole or not at all.
func TestALargeFileIsSentInParts(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	store := &s3{objects: map[string]object{}}
	server := httptest.NewServer(store)
	defer server.Close()
	b, err := Open(t.Context(), "s3://evidence?region=eu-central-1&use_path_style=true&endpoint="+url.QueryEscape(server.URL))
	must.NoError(t, err)
	defer func() { _ = b.Close() }()
	for _, length := range []int{part - 1, part, 2*part + 5} {
		store.requests = nil
		content := strings.Repeat("0123456789abcde\n", length/16+1)[:length]
		must.NoError(t, b.Write(t.Context(), "acc/j1/film", "video/webm", map[string]string{"job": "é"}, strings.NewReader(content)))
		kept := store.objects["/evidence/acc/j1/film"]
		if kept.content != content || kept.header.Get("Content-Type") != "video/webm" || kept.header.Get("X-Amz-Meta-Job") != "%C3%A9" {
			t.Errorf("of %d bytes %d are kept, told %v", length, len(kept.content), kept.header)
		}
		if inParts := slices.Contains(store.requests, "PUT 1"); inParts != (length >= part) {
			t.Errorf("%d bytes took %q", length, store.requests)
		}
	}
	for _, length := range []int{part, part + 5, 2 * part} {
		err := b.Write(t.Context(), "acc/j1/half", "video/webm", nil, brokenReader{strings.NewReader(strings.Repeat("x", length))})
		if !errors.Is(err, io.ErrUnexpectedEOF) || store.objects["/evidence/acc/j1/half"].content != "" || store.parts != nil {
			t.Errorf("an upload that broke off after %d bytes left %d, and %d parts: %v", length, len(store.objects["/evidence/acc/j1/half"].content), len(store.parts), err)
		}
	}
}
