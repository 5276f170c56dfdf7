package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"github.com/lib/pq"

	"humanqa/httpapi/evidence"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/must"
)

var aPNG = filetest.PNG("")

// formOf is a form with one file; fields are further parts before it.
func formOf(t *testing.T, name, declared, content string, fields ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		must.NoError(t, w.WriteField(f, "whatever"))
	}
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", `form-data; name="file"; filename="`+name+`"`)
	header.Set("Content-Type", declared)
	part, err := w.CreatePart(header)
	if err == nil {
		_, err = io.WriteString(part, content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

func (w *work) uploads(content string) result {
	w.s.t.Helper()
	body, contentType := formOf(w.s.t, "shot.png", "image/png", content)
	return w.s.call(w.checker, "POST", "/v1/checker/jobs/"+w.jobID+"/evidence", body,
		"X-Claim-Token", w.token, "Content-Type", contentType)
}

// shown uploads the file and gives its link.
func (w *work) shown(content string) string {
	w.s.t.Helper()
	link, _ := w.uploads(content).want(http.StatusCreated)["url"].(string)
	return link
}

// visit opens a link of the service, as a browser would.
func (s *service) visit(link string, headers ...string) result {
	s.t.Helper()
	target, ours := strings.CutPrefix(link, "https://qa.example")
	if !ours {
		s.t.Fatalf("%q is not a link of the service", link)
	}
	return s.call("", "GET", target, "", headers...)
}

// working is a checker's claim on a job with one item.
func (s *service) working(key string) *work {
	s.t.Helper()
	return s.claims(s.checker(), s.submittedWith(key, checklistOf(1)))
}

// pieces counts the rows of the test's accounts that are finished, and those that are not.
func (s *service) pieces() (finished, unfinished int) {
	s.t.Helper()
	err := s.db.QueryRowContext(s.t.Context(), `
		SELECT count(*) FILTER (WHERE stored_at IS NOT NULL), count(*) FILTER (WHERE stored_at IS NULL)
		FROM http_evidence
		WHERE account_id = ANY ($1)`, pq.Array(s.parts.Accounts())).
		Scan(&finished, &unfinished)
	must.NoError(s.t, err)
	return finished, unfinished
}

// evidenceIDOf is the id of the piece that a link leads to.
func evidenceIDOf(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	must.NoError(t, err)
	return strings.TrimPrefix(u.Path, evidence.Prefix)
}

func withQuery(t *testing.T, link string, change func(url.Values)) string {
	t.Helper()
	u, err := url.Parse(link)
	must.NoError(t, err)
	q := u.Query()
	change(q)
	u.RawQuery = q.Encode()
	return u.String()
}
