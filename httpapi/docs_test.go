package httpapi

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/httpapi/input"
	"humanqa/httpapi/openapi"
	"humanqa/httpapi/wire"
	"humanqa/integrations/skill"
	"humanqa/internal/fence"
	"humanqa/internal/testing/must"
)

func TestTheRoutesAndTheDocumentAreTheSame(t *testing.T) {
	t.Parallel()
	checker, err := documented()
	must.NoError(t, err)
	var served []string
	for _, row := range routes {
		name := row.Method + " " + row.Pattern
		served = append(served, name)
		op := checker.Operation(row.Method, row.Pattern)
		if op == nil {
			continue // the comparison names it
		}
		var keyed bool
		for _, p := range op.Parameters {
			keyed = keyed || p.Value.Name == wire.IdempotencyHeader
		}
		if keyed != row.Creates {
			t.Errorf("%s: creates is %v, and the document says %v", name, row.Creates, keyed)
		}
		want := map[wire.Audience]string{wire.Public: "public", wire.Clients: "clients", wire.Checkers: "checkers", wire.Hooks: "hooks"}[row.Audience]
		named := "clients"
		switch given, isNamed := op.Extensions["x-audience"].(string); {
		case isNamed:
			named = given
		case op.Security != nil:
			named = "public"
		}
		if asked := op.Security == nil || len(*op.Security) > 0; named != want || asked != (row.Audience == wire.Clients || row.Audience == wire.Checkers) {
			t.Errorf("%s: it is for %s, and the document says %s; a credential: %v", name, want, named, asked)
		}
	}
	slices.Sort(served)
	equal(t, checker.Operations(), served)
}

func TestTheDocumentIsServedToEverybodyAndKept(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for path, document := range map[string][]byte{
		"/v1/openapi.json": openapi.Document(), "/v1/openapi-3.1.json": openapi.Document31(),
	} {
		r := s.call("", "GET", path, "")
		r.want(http.StatusOK)
		var of struct{ Servers []struct{ URL string } }
		must.NoError(t, json.Unmarshal(r.Body.Bytes(), &of))
		equal(t, of.Servers[0].URL, s.BaseURL)
		equal(t, strings.Replace(r.Body.String(), `"url":"`+s.BaseURL+`"`, `"url":"/"`, 1), string(document))
		again := s.call("", "GET", path, "", "If-None-Match", r.Header().Get("Etag"))
		equal(t, again.Code, http.StatusNotModified)
	}
}

// An agent asks for text, a browser for a page.
func TestTheReferenceIsMarkdownForWhoeverAsksForIt(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for accept, want := range map[string]string{
		"": "text/html", "*/*": "text/html", "text/html,application/xhtml+xml,*/*;q=0.8": "text/html", "text/*": "text/html",
		"text/markdown": "text/markdown", "text/markdown, text/html;q=0.9, */*;q=0.1": "text/markdown", "text/html, text/markdown;q=0.5": "text/html",
	} {
		r := s.call("", "GET", "/docs", "", "Accept", accept)
		equal(t, accept+": "+r.Header().Get("Content-Type"), accept+": "+want+"; charset=utf-8")
		equal(t, r.Header().Values("Vary"), []string{"Accept-Encoding", "Accept"})
	}
	text := s.call("", "GET", "/docs", "", "Accept", "text/markdown").Body.String()
	for _, row := range routes {
		if !strings.Contains(text, "\n### "+row.Method+" "+row.Pattern+"\n") {
			t.Errorf("%s %s is not there", row.Method, row.Pattern)
		}
	}
	for _, part := range []string{
		"# Human QA Testing Service\n", "## Rate limit\n", "```python\n# BASE_URL=", "\n## Jobs\n\nSubmit, follow",
		"- `Idempotency-Key` (header): ", `"jobType": "Payment Flow"`, "\n201 Submitted.\n\n```json\n{", "\n402 INSUFFICIENT_CREDITS: ",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q", part)
		}
	}
}

// Each page has a twin in Markdown: by its name, by what the client prefers, and as the page says.
func TestEveryPageOfTheReferenceHasItsMarkdown(t *testing.T) {
	t.Parallel()
	s := shared(t)
	for name := range openapi.ReferencePages() {
		path := strings.TrimSuffix("/docs/"+name, "/")
		page := s.call("", "GET", path, "", "Accept", "text/html").Body.String()
		link := regexp.MustCompile(`<link rel="alternate" type="text/markdown" href="([^"]+)">`).FindStringSubmatch(page)
		if link == nil {
			t.Errorf("%s names no twin", path)
			continue
		}
		twin := s.call("", "GET", "/docs/"+strings.TrimPrefix(link[1], "docs/"), "")
		equal(t, twin.Code, http.StatusOK)
		equal(t, twin.Header().Get("Content-Type"), "text/markdown; charset=utf-8")
		equal(t, strings.HasPrefix(twin.Body.String(), "# Human QA Testing Service"), true)
		if name != "" { // the whole reference is what /docs gives
			equal(t, s.call("", "GET", path, "", "Accept", "text/markdown").Body.String() == twin.Body.String(), true)
		}
	}
	equal(t, s.call("", "GET", "/docs/webhooks.json", "").want(http.StatusOK)["events"] != nil, true)
	s.call("", "GET", "/docs/nothing.md", "").want(http.StatusNotFound)
}

// llms.txt has the proposal's form and every page of the reference, and each of its links answers with text.
func TestTheTextsForCodingAgents(t *testing.T) {
	t.Parallel()
	s := shared(t)
	r := s.call("", "GET", "/llms.txt", "")
	equal(t, r.Code, http.StatusOK)
	text := r.Body.String()
	form := regexp.MustCompile(`^# [^\n]+\n\n> [^\n]+\n\n(?:- [^\n]+\n)+(?:\n## [^\n]+\n\n(?:- \[[^\]\n]+\]\([^)\s]+\): [^\n]+\n)+)+$`)
	if !form.MatchString(text) || !strings.Contains(text, fence.Rule) {
		t.Errorf("it has another form:\n%s", text)
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		path, ours := strings.CutPrefix(link[1], s.BaseURL)
		if got := s.call("", "GET", path, ""); !ours || got.Code != http.StatusOK || strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d, %s", link[1], got.Code, got.Header().Get("Content-Type"))
		}
	}
	for name := range openapi.ReferencePages() {
		if name != "" && !strings.Contains(text, "/docs/"+name+".md)") {
			t.Errorf("the page %s is not in it", name)
		}
	}
	equal(t, s.call("", "GET", "/llms-full.txt", "").Body.String(), string(openapi.Markdown().Body))
	equal(t, s.call("", "GET", "/docs/skill.md", "").Body.String(), skill.Text)
	equal(t, s.call("", "GET", "/docs/agents.md", "").Body.String(), skill.AgentsSection)

	if want := fmt.Sprintf("a General QA test %d, urgent %d.", job.GeneralQA.Price(false), job.GeneralQA.Price(true)); !strings.Contains(skill.AgentsSection, want) {
		t.Errorf("the section does not say %q", want)
	}
	for _, bound := range regexp.MustCompile(`hqa (?:test|retest) [^\n\x60]*--max-credits (\d+)`).FindAllStringSubmatch(skill.Text+skill.AgentsSection, -1) {
		equal(t, bound[1], fmt.Sprint(job.GeneralQA.Price(false)))
	}
	for _, header := range []string{input.SkillHeader, input.IterationHeader, input.MaxIterationsHeader} {
		equal(t, strings.Contains(skill.Text, "`"+header+"`"), true)
	}
	for _, end := range loop.Ends() {
		equal(t, fmt.Sprint(end, strings.Contains(skill.Text, string(end))), fmt.Sprint(end, true))
	}
	equal(t, strings.Contains(skill.Text, fmt.Sprintf("The limit is %d iterations", loop.DefaultMaxIterations)), true)
}

func TestLargeTextsAreCompressedForWhoeverTakesThat(t *testing.T) {
	t.Parallel()
	s := shared(t)
	fetch := func(path string, headers ...string) *httptest.ResponseRecorder { // call would read the compressed body
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	for _, path := range []string{"/v1/openapi.json", "/v1/openapi-3.1.json", "/docs", "/docs/jobs", "/docs/page.css"} {
		plain := fetch(path)
		packed := fetch(path, "Accept-Encoding", "br, gzip")
		equal(t, []string{plain.Header().Get("Content-Encoding"), packed.Header().Get("Content-Encoding")}, []string{"", "gzip"})
		equal(t, packed.Header().Get("Content-Type"), plain.Header().Get("Content-Type"))
		if size := packed.Body.Len(); size > plain.Body.Len()*2/3 || packed.Header().Get("Etag") == plain.Header().Get("Etag") {
			t.Errorf("%s: %d bytes of %d, as %s and %s", path, size, plain.Body.Len(), packed.Header().Get("Etag"), plain.Header().Get("Etag"))
		}
		unpacked, err := gzip.NewReader(packed.Body)
		must.NoError(t, err)
		content, err := io.ReadAll(unpacked)
		must.NoError(t, err)
		equal(t, string(content) == plain.Body.String(), true)
		again := fetch(path, "Accept-Encoding", "gzip", "If-None-Match", packed.Header().Get("Etag"))
		equal(t, again.Code, http.StatusNotModified)
	}
	for accept, want := range map[string]bool{
		"": false, "identity": false, "gzip;q=0": false, "gzip; q=0.0, *": false, "*": true, "*;q=0": false, "GZIP;q=0.5": true, "gzip;q=x": false,
	} {
		equal(t, fmt.Sprint(accept, wire.TakesGzip([]string{accept})), fmt.Sprint(accept, want))
	}
}

func TestAPathThatLeadsNowhereNamesTheNearest(t *testing.T) {
	t.Parallel()
	table := newTable(routes)
	for path, want := range map[string]string{
		"/v1/job":                            "/v1/jobs",
		"/jobs":                              "/v1/jobs",
		"/v1/jobs/":                          "/v1/jobs",
		"/V1/Jobs":                           "/v1/jobs",
		"/v1/jobs/1/ai_report":               "/v1/jobs/{id}/ai-report",
		"/v1/jobs/1/reports":                 "/v1/jobs/{id}/report",
		"/v1/hosted/tests":                   "/v1/hosted/test",
		"/hosted/test":                       "/v1/hosted/test",
		"/v1/project":                        "/v1/projects",
		"/v1/projects/1/histroy":             "/v1/projects/{id}/history",
		"/v1/hook/deploy/x":                  "/v1/hooks/deploy/{token}",
		"/openapi.json":                      "/v1/openapi.json",
		"/doc":                               "/docs",
		"/":                                  "",
		"/admin":                             "",
		"/v1/jobs/1/2/3/4":                   "",
		"/wp-login.php":                      "",
		strings.Repeat("/a", 100):            "",
		"/v1/" + strings.Repeat("j", 10_000): "",
	} {
		near := table.nearest(path)
		if len(near) == 0 && want == "" || len(near) > 0 && near[0] == want {
			continue
		}
		t.Errorf("%.40s: %v, want %s first", path, near, want)
	}
	s := shared(t)
	_, key := s.account(0)
	equal(t, s.call(key, "GET", "/v1/job", "").want(http.StatusNotFound)["hint"], any("did you mean /v1/jobs? GET /docs shows the paths there are"))
	equal(t, s.call("", "GET", "/nowhere", "").want(http.StatusNotFound)["hint"], any("GET /docs shows the paths there are"))
}

// absolute finds the name of another host, and loaded what a page would load or lead to.
var (
	absolute = regexp.MustCompile(`(?i)(?:https?:)?//[a-z0-9]`)
	loaded   = regexp.MustCompile(`(?i)(?:src|href|action)="(?:https?:)?//[^"]*"`)
)

func TestTheReferencePageNeedsNobodyElse(t *testing.T) {
	t.Parallel()
	s := shared(t)
	page := s.call("", "GET", "/docs", "")
	equal(t, page.Code, http.StatusOK)
	equal(t, page.Header().Get("Content-Type"), "text/html; charset=utf-8")
	if found := loaded.FindAllString(page.Body.String(), -1); found != nil {
		t.Errorf("the page names %v", found)
	}
	// Whatever the viewer holds, the browser may not load it from elsewhere.
	for directive := range strings.SplitSeq(page.Header().Get("Content-Security-Policy"), ";") {
		for i, source := range strings.Fields(directive) {
			if i > 0 && !slices.Contains([]string{"'none'", "'self'", "data:"}, source) {
				t.Errorf("%s allows %s", directive, source)
			}
		}
	}
	if !strings.HasPrefix(page.Header().Get("Content-Security-Policy"), "default-src 'none'; style-src 'self'; font-src 'self';") {
		t.Errorf("the policy is %q", page.Header().Get("Content-Security-Policy"))
	}
	files := regexp.MustCompile(`(?:src|href)="(docs/[^"]+\?v=[^"]+)"`).FindAllStringSubmatch(page.Body.String(), -1)
	equal(t, len(files), 1)
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

// Every operation and every schema that is named has its place, and a page with all it
// loads is small.
func TestTheReferenceHasEveryOperation(t *testing.T) {
	t.Parallel()
	s := shared(t)
	all, whole := "", map[string]string{}
	for name := range openapi.ReferencePages() {
		path := strings.TrimSuffix("/docs/"+name, "/")
		r := s.call("", "GET", path, "")
		equal(t, r.Code, http.StatusOK)
		equal(t, r.Header().Get("Content-Type"), "text/html; charset=utf-8")
		whole[name] = r.Body.String()
		all += whole[name]
		// As a browser gets them; the font is packed already.
		size := len(packed(t, whole[name])) + len(packed(t, string(openapi.ViewerFiles()["page.css"].Body))) + len(openapi.ViewerFiles()["inter.woff2"].Body)
		if size > 100_000 {
			t.Errorf("%s takes %d bytes", path, size)
		}
		if found := loaded.FindAllString(whole[name], -1); found != nil {
			t.Errorf("%s names %v", path, found)
		}
	}
	for _, row := range routes {
		if call := `<b class="method">` + row.Method + "</b> " + row.Pattern + "</code>"; !strings.Contains(all, call) {
			t.Errorf("%s %s is not there", row.Method, row.Pattern)
		}
	}
	for _, name := range regexp.MustCompile(`href="schemas#([^"]+)"`).FindAllStringSubmatch(all, -1) {
		if !strings.Contains(whole["schemas"], `id="`+name[1]+`"`) {
			t.Errorf("a link leads to the schema %s, which is not there", name[1])
		}
	}
	for _, link := range regexp.MustCompile(`href="docs/([a-z]+)#([^"]+)"`).FindAllStringSubmatch(whole[""], -1) {
		if !strings.Contains(whole[link[1]], `id="`+link[2]+`"`) {
			t.Errorf("a link leads to %s of %s, which is not there", link[2], link[1])
		}
	}
}

func TestTheFormatsOfReportsAreShownAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	checker, err := documented()
	must.NoError(t, err)
	for pattern, name := range map[string]string{
		"/v1/jobs/{id}/report":           "job",
		"/v1/jobs/bulk/{batchId}/report": "batch",
	} {
		content := checker.Operation("GET", pattern).Responses.Status(http.StatusOK).Value.Content
		for media, extension := range map[string]string{
			"application/vnd.ctrf+json": ".ctrf", "application/xml": ".junit", "text/markdown": ".md",
		} {
			want, err := os.ReadFile("report/testdata/" + name + extension)
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
