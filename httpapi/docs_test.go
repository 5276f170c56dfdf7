package httpapi

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa/httpapi/openapi"
	"humanqa/internal/apicheck"
	"humanqa/internal/must"
)

// newChecker reads the document as the service serves it.
func newChecker(t *testing.T) *apicheck.Checker {
	t.Helper()
	c, err := apicheck.New(openapi.Document())
	must.NoError(t, err)
	return c
}

func TestTheRoutesAndTheDocumentAreTheSame(t *testing.T) {
	t.Parallel()
	checker := newChecker(t)
	var served []string
	for _, row := range routes {
		name := row.method + " " + row.pattern
		served = append(served, name)
		op := checker.Operation(row.method, row.pattern)
		if op == nil {
			continue // the comparison names it
		}
		var keyed bool
		for _, p := range op.Parameters {
			keyed = keyed || p.Value.Name == idempotencyHeader
		}
		if keyed != row.creates {
			t.Errorf("%s: creates is %v, and the document says %v", name, row.creates, keyed)
		}
		want := map[audience]string{public: "public", clients: "clients", checkers: "checkers", hooks: "hooks"}[row.audience]
		named := "clients"
		switch given, isNamed := op.Extensions["x-audience"].(string); {
		case isNamed:
			named = given
		case op.Security != nil:
			named = "public"
		}
		if asked := op.Security == nil || len(*op.Security) > 0; named != want || asked != (row.audience == clients || row.audience == checkers) {
			t.Errorf("%s: it is for %s, and the document says %s; a credential: %v", name, want, named, asked)
		}
	}
	slices.Sort(served)
	equal(t, checker.Operations(), served)
}

func TestTheDocumentIsServedToEverybodyAndKept(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for path, document := range map[string][]byte{
		"/v1/openapi.json": openapi.Document(), "/v1/openapi-3.1.json": openapi.Document31(),
	} {
		r := s.call("", "GET", path, "")
		r.want(http.StatusOK)
		equal(t, r.Body.String(), string(document))
		again := s.call("", "GET", path, "", "If-None-Match", r.Header().Get("Etag"))
		equal(t, again.Code, http.StatusNotModified)
	}
}

// absolute finds what would be loaded from another host.
var absolute = regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9]`)

func TestTheReferencePageNeedsNobodyElse(t *testing.T) {
	t.Parallel()
	s := setup(t)
	page := s.call("", "GET", "/docs", "")
	equal(t, page.Code, http.StatusOK)
	equal(t, page.Header().Get("Content-Type"), "text/html; charset=utf-8")
	if found := absolute.FindAllString(page.Body.String(), -1); found != nil {
		t.Errorf("the page names %v", found)
	}
	// Whatever the viewer holds, the browser may not load it from elsewhere.
	for directive := range strings.SplitSeq(page.Header().Get("Content-Security-Policy"), ";") {
		for i, source := range strings.Fields(directive) {
			if i > 0 && !slices.Contains([]string{"'none'", "'self'", "'unsafe-inline'", "data:"}, source) {
				t.Errorf("%s allows %s", directive, source)
			}
		}
	}
	if !strings.HasPrefix(page.Header().Get("Content-Security-Policy"), "default-src 'none'; script-src 'self';") {
		t.Errorf("the policy is %q", page.Header().Get("Content-Security-Policy"))
	}
	files := regexp.MustCompile(`(?:src|href|data-file)="(docs/[^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	equal(t, len(files), 7) // with the four programs of the quickstart
	for _, file := range files {
		r := s.call("", "GET", "/"+file[1], "")
		equal(t, r.Code, http.StatusOK)
		equal(t, r.Header().Get("Cache-Control"), cacheForEver)
		equal(t, r.Header().Get("X-Content-Type-Options"), "nosniff")
		name, _, _ := strings.Cut(file[1], "?")
		equal(t, s.call("", "GET", "/"+name, "").Header().Get("Cache-Control"), cacheAndCheck)
	}
	for name := range openapi.ViewerFiles() {
		if strings.HasSuffix(name, ".css") && absolute.Match(openapi.ViewerFiles()[name].Body) {
			t.Errorf("%s names another host", name)
		}
	}
	s.call("", "GET", "/docs/page.html", "").want(http.StatusNotFound)
	s.call("", "GET", "/docs/..%2Fpage.html", "").want(http.StatusNotFound)
}

func TestTheFormatsOfReportsAreShownAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	checker := newChecker(t)
	for pattern, name := range map[string]string{
		"/v1/jobs/{id}/report":           "report.job",
		"/v1/jobs/bulk/{batchId}/report": "report.batch",
	} {
		content := checker.Operation("GET", pattern).Responses.Status(http.StatusOK).Value.Content
		for media, extension := range map[string]string{
			"application/vnd.ctrf+json": ".ctrf", "application/xml": ".junit", "text/markdown": ".md",
		} {
			want, err := os.ReadFile("testdata/" + name + extension)
			must.NoError(t, err)
			shown := content[media].Example
			for _, example := range content[media].Examples {
				shown = example.Value.Value
			}
			if extension != ".ctrf" {
				equal(t, shown, string(want))
				continue
			}
			var written any
			must.NoError(t, json.Unmarshal(want, &written))
			equal(t, shown, written)
		}
	}
}
