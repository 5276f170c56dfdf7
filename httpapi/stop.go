package httpapi

import (
	"net/http"
	"sync"
)

// stopSignal tells requests that wait for something that the service is about
// to stop: they answer with what there is.
type stopSignal struct {
	once sync.Once
	ch   chan struct{}
}

func newStopSignal() *stopSignal { return &stopSignal{ch: make(chan struct{})} }

func (s *stopSignal) begun() <-chan struct{} { return s.ch }

func (s *stopSignal) begin() { s.once.Do(func() { close(s.ch) }) }

// Stop tells requests that wait for something to answer with what there is.
func (a *API) Stop() { a.stopping.begin() }

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
