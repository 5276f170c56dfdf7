package ui

import "net/http"

// Front is the pages with the API behind them.
type Front struct {
	Site *Site
	API  interface {
		http.Handler
		Stop()
	}
	// Halted, unless nil, is why there are no pages: the API says so.
	Halted func() error
	// Settle makes a request's RemoteAddr and URL.Scheme its client's
	// (httpapi.Reach).
	Settle func(*http.Request)
}

// ServeHTTP gives pages to the site, and all else to the API.
func (f Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.Settle(r)
	if f.Site.Serves(r.URL.Path) && (f.Halted == nil || f.Halted() == nil) {
		f.Site.ServeHTTP(w, r)
		return
	}
	f.API.ServeHTTP(w, r)
}

// Stop tells both that the server is about to.
func (f Front) Stop() {
	f.Site.Stop()
	f.API.Stop()
}
