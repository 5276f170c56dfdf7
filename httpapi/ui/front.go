package ui

import (
	"net/http"
	"strings"
)

// Front serves the pages and the API.
type Front struct {
	Site *Site
	API  interface {
		http.Handler
		Stop()
	}
	// Halted, unless nil, gives the reason why no pages are served, or no error. The API
	// answers with the reason.
	Halted func() error
	// Settle makes a request's RemoteAddr and URL.Scheme its client's
	// (httpapi.Reach).
	Settle func(*http.Request)
}

// ServeHTTP gives pages to the site, and all else to the API.
func (f Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Settle(r)
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	halted := f.Halted != nil && f.Halted() != nil
	switch {
	case f.Site.Serves(r.URL.Path) && !halted:
		f.Site.ServeHTTP(w, r)
	case reads && strings.Contains(r.Header.Get("Accept"), "text/html") && !halted:
		found := &withoutNotFound{ResponseWriter: w}
		f.API.ServeHTTP(found, r)
		if found.nothing { // a person typed the address: the site answers with a page
			w.Header().Del("Content-Length")
			f.Site.ServeHTTP(w, r)
		}
	default:
		f.API.ServeHTTP(w, r)
	}
}

// withoutNotFound holds the API's 404 back.
type withoutNotFound struct {
	http.ResponseWriter
	nothing bool
}

func (w *withoutNotFound) WriteHeader(status int) {
	w.nothing = status == http.StatusNotFound
	if !w.nothing {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *withoutNotFound) Write(b []byte) (int, error) {
	if w.nothing {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (w *withoutNotFound) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Stop tells both that the server is about to stop.
func (f Front) Stop() {
	f.Site.Stop()
	f.API.Stop()
}
