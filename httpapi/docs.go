package httpapi

import (
	"net/http"
	"sync"

	"humanqa/domain"
	"humanqa/httpapi/openapi"
	"humanqa/httpapi/wire"
)

// pagePolicy lets a page of the reference load its own style and font, and nothing else from
// anywhere. It has no script.
const pagePolicy = "default-src 'none'; style-src 'self'; font-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const (
	cacheForEver  = "public, max-age=31536000, immutable"
	cacheAndCheck = "no-cache"
)

// served answers with a file that clients ask for again.
func served(file func() openapi.File) func(*wire.Request) (wire.Answer, error) {
	return func(r *wire.Request) (wire.Answer, error) { return serveFile(r, file(), cacheAndCheck), nil }
}

// servedHere answers with a file that names the service's address.
func (a *API) servedHere(file func(base string) openapi.File) func(*wire.Request) (wire.Answer, error) {
	return served(sync.OnceValue(func() openapi.File { return file(a.BaseURL) }))
}

// docs is GET /docs: the document as a page, or as Markdown for clients that prefer it.
func (a *API) docs(r *wire.Request) (wire.Answer, error) {
	return pageOrText(r, openapi.ReferencePages()[""], openapi.Markdown()), nil
}

// pageOrText answers with the page or the text, as the client prefers.
func pageOrText(r *wire.Request, page, text openapi.File) wire.Answer {
	asked := r.Header.Values("Accept")
	if wire.Quality(asked, "text/markdown") > wire.Quality(asked, "text/html") {
		page = text
	}
	ans := serveFile(r, page, cacheAndCheck)
	ans.Header.Add("Vary", "Accept")
	return asPage(ans)
}

// asPage adds the headers that protect a page in a browser.
func asPage(ans wire.Answer) wire.Answer {
	ans.Header.Set("Content-Security-Policy", pagePolicy)
	ans.Header.Set("Referrer-Policy", "no-referrer")
	return ans
}

// docsFile is GET /docs/:file: a page of the reference, its Markdown (name.md), or a file. A page asks for a file
// by its content's name; that answer never changes.
func (a *API) docsFile(r *wire.Request) (wire.Answer, error) {
	name := r.Vars["file"]
	if page, ok := openapi.ReferencePages()[name]; ok {
		return pageOrText(r, page, openapi.ReferenceTexts()[name]), nil
	}
	file, ok := openapi.ReferenceFiles()[name]
	if !ok {
		return wire.Answer{}, domain.NotFound("file")
	}
	cache := cacheAndCheck
	if r.URL.Query().Get("v") == file.Hash {
		cache = cacheForEver
	}
	return serveFile(r, file, cache), nil
}

// serveFile answers with a file, compressed where the client accepts that, or with 304
// where the client has it already.
func serveFile(r *wire.Request, file openapi.File, cache string) wire.Answer {
	header := http.Header{"Cache-Control": {cache}, "Vary": {"Accept-Encoding"}}
	body, tag := file.Body, file.Hash
	if packed := file.Packed(); len(packed) < len(body) && wire.TakesGzip(r.Header.Values("Accept-Encoding")) {
		body, tag = packed, tag+"-gzip"
		header.Set("Content-Encoding", "gzip")
	}
	tag = `"` + tag + `"`
	header.Set("Etag", tag)
	if wire.Matches(r.Header.Values("If-None-Match"), tag) {
		header.Del("Content-Encoding")
		return wire.Answer{Status: http.StatusNotModified, Header: header}
	}
	header.Set("Content-Type", file.Type)
	return wire.Answer{Status: http.StatusOK, Header: header, Body: body}
}
