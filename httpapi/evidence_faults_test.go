package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/httpapi/evidence"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/must"
)

// faultyFiles is a bucket that fails, before or behind its work.
type faultyFiles struct {
	evidence.Files
	before, behind, reading error
}

func (f *faultyFiles) Write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error {
	if f.before != nil {
		return f.before
	}
	return errors.Join(f.Files.Write(ctx, key, contentType, about, content), f.behind)
}

func (f *faultyFiles) Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if f.reading != nil {
		return nil, f.reading
	}
	return f.Files.Read(ctx, key, offset, length)
}

func TestAnUploadThatBrokeOffIsTakenUpAgainOrSwept(t *testing.T) {
	t.Parallel()
	away := errors.New("out of luck")
	all := own(t)
	for name, fault := range map[string]*faultyFiles{
		"before the file was there": {before: away},
		"behind the file":           {behind: away},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: a sweep is of every account's files
			s := all.beneath(t).node(nil)
			_, key := s.account(100)
			good := s.Evidence.Files
			fault.Files = good
			s.Evidence.Files = fault
			w := s.working(key)
			r := w.uploads(aPNG)
			r.refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
			if strings.Contains(r.Body.String(), "luck") || !strings.Contains(s.logged.String(), "out of luck") {
				t.Errorf("the answer is %s", r.Body)
			}
			w.uploads(filetest.PNG("2")).refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
			finished, unfinished := s.pieces()
			equal(t, []int{finished, unfinished}, []int{0, 2})

			s.Evidence.Files = good
			link := w.shown(aPNG) // the same row goes on
			finished, unfinished = s.pieces()
			equal(t, []int{finished, unfinished}, []int{1, 1})

			// What is young may still be on its way.
			s.sweeps()
			finished, unfinished = s.pieces()
			equal(t, []int{finished, unfinished}, []int{1, 1})
			var broken string // its key
			err := s.db.GetContext(t.Context(), &broken, `UPDATE http_evidence SET begun_at = now() - interval '61 minutes' WHERE stored_at IS NULL
				RETURNING account_id || '/' || job_id || '/' || id`)
			must.NoError(t, err)
			s.sweeps()
			finished, unfinished = s.pieces()
			equal(t, []int{finished, unfinished}, []int{1, 0})
			if _, err := good.Read(t.Context(), broken, 0, 1); err == nil {
				t.Error("the file that nobody knows is still there")
			}
			equal(t, s.visit(link).Body.String(), aPNG)
			w.uploads(filetest.PNG("2")).want(http.StatusCreated) // and the swept one begins anew
		})
	}
}

func (s *service) sweeps() {
	s.t.Helper()
	must.NoError(s.t, s.Evidence.Sweep(s.t.Context()))
}

func TestABucketThatIsAwayIsNoFaultOfTheLink(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	link := s.working(key).shown(aPNG)
	s.Evidence.Files = &faultyFiles{Files: s.Evidence.Files, reading: errors.New("out of luck")}
	r := s.visit(link)
	r.refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	equal(t, r.Header().Get("Content-Disposition")+r.Header().Get("Etag"), "")
}

// brittle is a file whose bucket goes away in the middle.
type brittle struct{ io.ReadCloser }

func (b brittle) Read(p []byte) (int, error) {
	n, _ := b.ReadCloser.Read(p[:min(len(p), 100)])
	return n, errors.New("out of luck")
}

type brittleFiles struct{ evidence.Files }

func (f brittleFiles) Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := f.Files.Read(ctx, key, offset, length)
	return brittle{r}, err
}

func TestHalfAFileIsNotTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	link := s.working(key).shown(filetest.PNG(strings.Repeat("x", 1000)))
	s.Evidence.Files = brittleFiles{s.Evidence.Files}
	server := httptest.NewServer(s)
	defer server.Close()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(link, "https://qa.example", server.URL, 1), nil)
	must.NoError(t, err)
	got, err := server.Client().Do(ask)
	must.NoError(t, err)
	defer func() { _ = got.Body.Close() }()
	if all, err := io.ReadAll(got.Body); err == nil {
		t.Errorf("%d bytes came, and the end", len(all))
	}
}
