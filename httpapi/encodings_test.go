package httpapi

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/httpapi/openapi"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	must.NoError(t, err)
	must.NoError(t, w.Close())
	return b.String()
}

func inUTF16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

func TestABodyIsReadOrRefusedByItsEncoding(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	for _, encoding := range []string{"gzip", "GZIP", "x-gzip", "identity, gzip"} {
		s.call(key, "POST", "/v1/jobs", packed(t, aJob), "Content-Encoding", encoding).want(http.StatusCreated)
	}
	s.call(key, "POST", "/v1/jobs", aJob, "Content-Encoding", "identity").want(http.StatusCreated)
	s.call(key, "POST", "/v1/jobs", "\ufeff"+aJob).want(http.StatusCreated)
	s.call(key, "POST", "/v1/jobs", packed(t, "\ufeff"+aJob), "Content-Encoding", "gzip").want(http.StatusCreated)
	large := aJob[:1] + strings.Repeat(" ", 3*wire.SmallBody) + aJob[1:]
	s.call(key, "POST", "/v1/jobs", packed(t, large), "Content-Encoding", "gzip").want(http.StatusCreated)

	for _, encoding := range []string{"br", "deflate", "zstd", "compress", "gzip, gzip", "gzip, br"} {
		r := s.call(key, "POST", "/v1/jobs", aJob, "Content-Encoding", encoding)
		r.refused(http.StatusUnsupportedMediaType, domain.CodeInvalidRequest)
		if r.Header().Get("Accept-Encoding") != "gzip" || !strings.Contains(r.Body.String(), encoding) {
			t.Errorf("%s: %v %s", encoding, r.Header(), r.Body)
		}
	}
	for _, broken := range []string{aJob, packed(t, aJob)[:40], packed(t, aJob)[:20] + "xxxx" + packed(t, aJob)[24:], ""} {
		r := s.call(key, "POST", "/v1/jobs", broken, "Content-Encoding", "gzip")
		r.refused(http.StatusBadRequest, domain.CodeInvalidRequest)
	}
	bomb := packed(t, strings.Repeat(" ", wire.MaxBody+1))
	s.call(key, "POST", "/v1/jobs", bomb, "Content-Encoding", "gzip").refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)

	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, mark := range []string{"", "\ufeff"} {
			r := s.call(key, "POST", "/v1/jobs", inUTF16(order, mark+aJob))
			r.refused(http.StatusBadRequest, domain.CodeInvalidRequest)
			if !strings.Contains(r.Body.String(), "is UTF-16") {
				t.Errorf("UTF-16 is refused as %s", r.Body)
			}
		}
	}
	s.call("", "POST", "/v1/device", packed(t, `{"client":"x"}`), "Content-Encoding", "gzip").want(http.StatusCreated)
	s.call("", "POST", "/v1/device", `{}`, "Content-Encoding", "br").refused(http.StatusUnsupportedMediaType, domain.CodeInvalidRequest)
}

// head asks a server for the headers of a path, which is all that it gets.
func head(t *testing.T, srv *httptest.Server, key, path string, headers ...string) (answer headAnswer) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, srv.URL+path, nil)
	must.NoError(t, err)
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := srv.Client().Do(r)
	must.NoError(t, err)
	must.NoError(t, res.Body.Close())
	return headAnswer{res.StatusCode, res.Header}
}

// headAnswer has no body.
type headAnswer struct {
	StatusCode int
	Header     http.Header
}

func TestEveryReadAnswersHEAD(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	checker, srv := s.checker(), s.online()
	for _, row := range routes {
		if row.Method != http.MethodGet {
			continue
		}
		path := at(row.Pattern, uuid.NewString())
		who := s.keyFor(row.Audience, key, checker)
		get, head := s.call(who, "GET", path, ""), head(t, srv, who, path)
		if head.StatusCode != get.Code {
			t.Errorf("HEAD %s: %d, and GET %d", path, head.StatusCode, get.Code)
		}
		for _, name := range []string{"Content-Type", "Etag", "Cache-Control"} {
			if head.Header.Get(name) != get.Header().Get(name) {
				t.Errorf("HEAD %s: %s is %q, and of GET %q", path, name, head.Header.Get(name), get.Header().Get(name))
			}
		}
	}
	stream := head(t, srv, key, "/v1/events", "Accept", "text/event-stream")
	if stream.StatusCode != http.StatusOK || stream.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD of a stream: %d %v", stream.StatusCode, stream.Header)
	}
	document := s.call("", "GET", "/docs.md", "")
	equal(t, document.Body.String(), string(openapi.Markdown().Body))
	equal(t, document.Header().Get("Content-Type"), "text/markdown; charset=utf-8")
}

// HEAD of a picture says how long it is, and reads none of it.
func TestAPictureAnswersHEAD(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	link := strings.TrimPrefix(s.working(key).shown(aPNG), "https://qa.example")
	get, head := s.call("", "GET", link, ""), head(t, s.online(), "", link)
	if head.StatusCode != http.StatusOK || head.Header.Get("Content-Length") != get.Header().Get("Content-Length") {
		t.Errorf("HEAD of a picture: %d %v", head.StatusCode, head.Header)
	}
}

// A browser takes any XML, but it prefers a page.
func TestABrowserGetsReportsAsJSON(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	job := s.tested(key, fails)
	for accept, want := range map[string]string{
		"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7": "application/json",
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8":                                                                         "application/json",
		"application/xml":                    "application/xml",
		"text/markdown, */*;q=0.1":           "text/markdown",
		"text/markdown, text/html;q=0.9":     "text/markdown",
		"application/vnd.ctrf+json, */*;q=0": "application/vnd.ctrf+json",
	} {
		r := s.call(key, "GET", "/v1/jobs/"+job+"/report", "", "Accept", accept)
		if got := r.Header().Get("Content-Type"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", accept, got, want)
		}
	}
}

func TestSinceTakesEverySpellingOfATime(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-11-01T09:00:00Z": "2026-11-01T09:00:00Z", "2026-11-01t09:00:00z": "2026-11-01T09:00:00Z",
		"2026-11-01%2009:00:00Z": "2026-11-01T09:00:00Z", "2026-11-01_09:00:00z": "2026-11-01T09:00:00Z",
		"2026-11-01T09:00:00.5%2B02:00": "2026-11-01T07:00:00.5Z", "2026-11-01T09:00:00+02:00": "2026-11-01T07:00:00Z",
		"2026-11-01+09:00:00+02:00": "2026-11-01T07:00:00Z", "2026-11-01T09:00:00-00:00": "2026-11-01T09:00:00Z",
		"2026-11-01T23:59:60Z": "2026-11-01T23:59:59Z", "2026-11-01T23:59:60.25-01:00": "2026-11-02T00:59:59.25Z",
		"2026-11-01": "2026-11-01T00:00:00Z", "2026-11-01T09:60:00Z": "", "2026-11-01x09:00:00Z": "", "2026-13-01": "",
	} {
		var p wire.Problems
		got := wire.ParseQuery("since="+text, &p).Time("since")
		if (got == nil) != (want == "") || got != nil && got.Format("2006-01-02T15:04:05.999999999Z07:00") != want {
			t.Errorf("%s is %v, want %s", text, got, want)
		}
	}
}

// Typed clients send the name of an enum's value as their language spells it.
func TestAnEnumOfARequestMayHaveAnyCase(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	job := strings.Replace(aJob, "{", `{"priority":"Normal","generateChecklist":"ASYNC",`, 1)
	s.call(key, "POST", "/v1/jobs", job).want(http.StatusCreated)
	project := s.call(key, "POST", "/v1/projects", `{"name":"x","webhookUrl":"https://hooks.example.com/x","subscribedWebhookEvents":["Job.Completed"]}`).want(http.StatusCreated)
	id, _ := project["projectId"].(string)
	changed := s.call(key, "PATCH", "/v1/projects/"+id, `{"subscribedWebhookEvents":["JOB.CREATED"],"deployHookSignature":{"scheme":"GitHub","secret":"0123456789abcdef0123456789abcdef"}}`).want(http.StatusOK)
	equal(t, changed["subscribedWebhookEvents"], any([]any{"job.created"}))
	s.call(key, "GET", "/v1/jobs?status=Pending", "").want(http.StatusOK)
	s.call(key, "GET", "/v1/analytics/pass-rate?by=Week,JobType", "").want(http.StatusOK)
	s.call(key, "GET", "/v1/jobs?status=none", "").refused(http.StatusBadRequest, domain.CodeInvalidRequest)
}

// JSON's null is what a typed client sends for a body that nobody set.
func TestNullIsNoBodyWhereTheBodyIsOptional(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	_, sandbox := s.sandbox()
	s.call("", "POST", "/v1/device", " null\n").want(http.StatusCreated)
	s.call(sandbox, "POST", "/v1/sandbox/jobs/"+s.submitted(sandbox)+"/play", "null").want(http.StatusOK)
	job := s.submitted(key)
	s.call(key, "POST", "/v1/jobs/"+job+"/cancel", "null").want(http.StatusOK)
	s.call(key, "POST", "/v1/jobs/"+job+"/retest", "null").want(http.StatusCreated)
	s.call(key, "POST", "/v1/jobs", "null").refused(http.StatusBadRequest, domain.CodeInvalidRequest)
}
