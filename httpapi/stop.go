package httpapi

import "net/http"

// Stop has requests that wait for news answer at once with the data they have.
func (a *API) Stop() { a.stop() }

// Leave has /readyz say 503 from now on. The API serves on, so that a proxy which asks has
// time to send its requests elsewhere.
func (a *API) Leave() { a.leaving.Store(true) }

// Parting has each answer end its connection once the service leaves. A client that keeps
// connections dials again, and so reaches a process that stays.
func (a *API) Parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
