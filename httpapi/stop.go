package httpapi

import (
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
