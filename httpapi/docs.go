package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"humanqa/domain"
	"humanqa/httpapi/openapi"
)

// pagePolicy lets the reference page load its own files and call this API, and
// nothing else from anywhere. The viewer sets styles as it draws.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	cacheForEver  = "public, max-age=31536000, immutable"
	cacheAndCheck = "no-cache"
)

// documentFile is a version of the document as a file.
func documentFile(document func() []byte) func() openapi.File {
	return sync.OnceValue(func() openapi.File { return openapi.NewFile("application/json; charset=utf-8", document()) })
}

var (
	document30 = documentFile(openapi.Document)
	document31 = documentFile(openapi.Document31)
)

// openAPI is GET /v1/openapi.json.
func (a *API) openAPI(r *request) (answer, error) {
	return serveFile(r, document30(), cacheAndCheck), nil
}

// openAPI31 is GET /v1/openapi-3.1.json.
func (a *API) openAPI31(r *request) (answer, error) {
	return serveFile(r, document31(), cacheAndCheck), nil
}

// docs is GET /docs: the document, for people, or as Markdown for whoever asks for
// that rather than for a page.
func (a *API) docs(r *request) (answer, error) {
	asked := r.Header.Values("Accept")
	page, text := reportFormat{types: []string{"text/html"}}, reportFormat{types: []string{"text/markdown"}}
	file := openapi.Page()
	if text.quality(asked) > page.quality(asked) {
		file = openapi.Markdown()
	}
	ans := serveFile(r, file, cacheAndCheck)
	ans.header.Add("Vary", "Accept")
	ans.header.Set("Content-Security-Policy", pagePolicy)
	ans.header.Set("Referrer-Policy", "no-referrer")
	return ans, nil
}

// docsFile is GET /docs/:file. The page asks for a file by its content's name;
// that answer never changes.
func (a *API) docsFile(r *request) (answer, error) {
	file, ok := openapi.ViewerFiles()[r.vars["file"]]
	if !ok {
		return answer{}, domain.NotFound("file")
	}
	cache := cacheAndCheck
	if r.URL.Query().Get("v") == file.Hash {
		cache = cacheForEver
	}
	return serveFile(r, file, cache), nil
}

// serveFile answers with a file, compressed where the client takes that, or that the
// client has it already.
func serveFile(r *request, file openapi.File, cache string) answer {
	header := http.Header{"Cache-Control": {cache}, "Vary": {"Accept-Encoding"}}
	body, tag := file.Body, file.Hash
	if packed := file.Packed(); len(packed) < len(body) && takesGzip(r.Header.Values("Accept-Encoding")) {
		body, tag = packed, tag+"-gzip"
		header.Set("Content-Encoding", "gzip")
	}
	tag = `"` + tag + `"`
	header.Set("Etag", tag)
	if matches(r.Header.Values("If-None-Match"), tag) {
		header.Del("Content-Encoding")
		return answer{status: http.StatusNotModified, header: header}
	}
	header.Set("Content-Type", file.Type)
	return answer{status: http.StatusOK, header: header, body: body}
}

// takesGzip says that an Accept-Encoding names gzip, by itself or by *, and not with
// the weight 0 (RFC 9110, section 12.5.3).
func takesGzip(accept []string) bool {
	takes := false
	for _, one := range listed(accept) {
		name, params, _ := strings.Cut(one, ";")
		q, weighed := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		refused := weighed && (err != nil || weight == 0)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip", "x-gzip":
			return !refused
		case "*":
			takes = !refused
		}
	}
	return takes
}
