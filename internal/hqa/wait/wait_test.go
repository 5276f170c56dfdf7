package wait_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"humanqa/internal/hqa/api"
	"humanqa/internal/hqa/wait"
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
	client, err := api.New(srv.URL, "qa_live_x", "test")
	must.NoError(t, err)
	var moved error
	w := wait.Waiter{API: client, Tell: func(n wait.Note) {
		if n.Moved != nil {
			moved = n.Moved
		}
	}}
	err = w.For(t.Context(), []string{"j"})
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound || !strings.Contains(refused.Hint, "restored from a backup") {
		t.Errorf("the wait ends with %v", err)
	}
	if moved == nil || !strings.Contains(moved.Error(), "the log was restored") {
		t.Errorf("it told %v", moved)
	}
}
