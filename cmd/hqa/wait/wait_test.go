package wait_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"humanqa/cmd/hqa/wait"
	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/testing/must"
)

// The service is restored from a backup of before the submission, under a wait.
func TestAWaitIsToldThatTheServiceWasRestored(t *testing.T) {
	t.Parallel()
	var continued atomic.Bool
	answer := func(w http.ResponseWriter, status int, body string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the test sees what is missing
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/jobs/j/events":
			answer(w, http.StatusOK, `{"jobId":"j","events":[{"cursor":"9-9.aaaaaaaa"}]}`)
		case r.URL.Path == "/v1/events" && r.URL.Query().Get("after") == "9-9.aaaaaaaa":
			answer(w, http.StatusConflict, `{"error":"the log was restored","code":"ANOTHER_LOG","requestId":"r","next":"5-5.bbbbbbbb"}`)
		case r.URL.Path == "/v1/events" && r.URL.Query().Get("after") == "5-5.bbbbbbbb":
			continued.Store(true)
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte(": here\n\n")) // likewise
			must.NoError(t, http.NewResponseController(w).Flush())
			<-r.Context().Done()
		case continued.Load():
			answer(w, http.StatusNotFound, `{"error":"job not found","code":"NOT_FOUND","requestId":"r"}`)
		default:
			answer(w, http.StatusOK, `{"jobId":"j","status":"pending","statusMessage":"Waiting"}`)
		}
	}))
	t.Cleanup(srv.Close)
	client, err := humanqa.New(srv.URL, "qa_live_x", "test")
	must.NoError(t, err)
	var moved error
	w := wait.Waiter{API: client, Tell: func(n wait.Note) {
		if n.Moved != nil {
			moved = n.Moved
		}
	}}
	err = w.For(t.Context(), []string{"j"})
	var refused *humanqa.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound || !strings.Contains(refused.Hint, "restored from a backup") {
		t.Errorf("the wait ends with %v", err)
	}
	if moved == nil || !strings.Contains(moved.Error(), "the log was restored") {
		t.Errorf("it told %v", moved)
	}
}

// A service goes away while a wait has only a quiet stream to it. The next checkup is a
// minute away, and the stream is tried again each second.
func TestAWaitIsToldOfAServiceThatWentAwayWithItsStream(t *testing.T) {
	t.Parallel()
	const patience = 20 // tries of the stream
	ctx, end := context.WithCancel(t.Context())
	defer end()
	looked := make(chan struct{}, 100)
	var gone atomic.Bool
	var tries atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stream := r.URL.Path == "/v1/events"
		w.Header().Set("Content-Type", "application/json")
		switch {
		case gone.Load():
			if stream && tries.Add(1) > patience {
				end()
			}
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		case stream:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("id: 9-9\ndata: {\"jobId\":\"j\"}\n\n")) // the test sees what is missing
			must.NoError(t, http.NewResponseController(w).Flush())
			for range 2 { // at the beginning, and for the event
				select {
				case <-looked:
				case <-r.Context().Done():
				}
			}
			gone.Store(true)
		case r.URL.Path == "/v1/jobs/j/events":
			_, _ = w.Write([]byte(`{"jobId":"j","events":[{"cursor":"8-8"}]}`)) // likewise
		default:
			_, _ = w.Write([]byte(`{"jobId":"j","status":"pending","statusMessage":"Waiting"}`)) // likewise
			looked <- struct{}{}
		}
	}))
	t.Cleanup(srv.Close)
	client, err := humanqa.New(srv.URL, "qa_live_x", "test")
	must.NoError(t, err)
	lost := false
	w := wait.Waiter{API: client, Tell: func(n wait.Note) {
		if n.Lost != nil {
			lost = true
			end()
		}
	}}
	if err := w.For(ctx, []string{"j"}); !errors.Is(err, context.Canceled) || !lost {
		t.Errorf("after %d tries of the stream the wait ends with %v, told: %t", tries.Load(), err, lost)
	}
}
