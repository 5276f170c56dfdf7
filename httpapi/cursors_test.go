package httpapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/httpapi/readers"
	"humanqa/projections/events"
)

// lineage is the log's, as a test has it.
type lineage struct {
	mu        sync.Mutex
	now, next origin.Lineage // next is what a look finds
}

func (l *lineage) Lineage() origin.Lineage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *lineage) Check(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.next
	return nil
}

func (l *lineage) become(next origin.Lineage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.next = next, next
}

// onLog is the service on a log of that lineage.
func (s *service) onLog(l *lineage) {
	s.deps.Origin = l
	s.API = New(s.deps)
}

func TestACursorSaysOfWhichLogItIs(t *testing.T) {
	t.Parallel()
	s := shared(t)
	log := &lineage{}
	first := origin.Begin("the-log", "1/1")
	log.become(first)
	s.onLog(log)
	_, key := s.account(500)
	id := s.submitted(key)
	feed := s.feed(key, "/v1/events", 1)
	marked, _ := feed[0]["cursor"].(string)
	plain, ok := strings.CutSuffix(marked, "."+first.Mark())
	if !ok || s.call(key, "GET", "/v1/events", "").Header().Get(readers.LogHeader) != "the-log/1" {
		t.Fatalf("the cursor is %s", marked)
	}
	equal(t, each(s.feed(key, "/v1/jobs/"+id+"/events", 1), "cursor"), []string{marked})
	next := s.submitted(key)
	for _, after := range []string{marked, plain} { // and one of before there were marks
		equal(t, each(s.feed(key, "/v1/events?after="+after, 1), "jobId"), []string{next})
	}
	s.call(key, "GET", "/v1/jobs/"+id+"?asOf="+marked, "").want(http.StatusOK)
	end := s.call(key, "GET", "/v1/events", "").want(http.StatusOK)["next"].(string)
	equal(t, s.call(key, "GET", "/v1/events?after="+end, "").want(http.StatusOK)["next"], any(end))
}

func TestARestoredLogTellsReadersWhereToContinue(t *testing.T) {
	t.Parallel()
	s := shared(t)
	log := &lineage{}
	log.become(origin.Begin("the-log", "1/1"))
	s.onLog(log)
	_, key := s.account(500)
	s.submitted(key)
	common := s.feed(key, "/v1/events", 1)[0]["cursor"].(string)
	s.submitted(key)
	lost := s.feed(key, "/v1/events", 2)[1]["cursor"].(string)
	at, _, _ := events.SplitCursor(lost)
	// The backup was made between the two, and the second place is that of the restore.
	log.become(log.Lineage().Restored(uuid.New(), at))
	after := s.submitted(key)

	// All before the restore is common to both generations.
	if n := len(s.feed(key, "/v1/events?after="+common, 2)); n != 2 {
		t.Errorf("%d events behind a common place", n)
	}
	for _, r := range []result{
		s.call(key, "GET", "/v1/events?after="+lost, ""),
		s.call(key, "GET", "/v1/events", "", "Accept", "text/event-stream", "Last-Event-ID", lost),
	} {
		body := r.refused(http.StatusConflict, domain.CodeAnotherLog)
		equal(t, body["log"], any("the-log/2"))
		next, _ := body["next"].(string)
		if hint, _ := body["hint"].(string); next == "" || !strings.Contains(hint, "after="+next) {
			t.Errorf("next %q, hint %q", next, hint)
		}
		equal(t, each(s.feed(key, "/v1/events?after="+next, 1), "jobId"), []string{after})
	}
	s.call(key, "GET", "/v1/jobs?asOf="+lost, "").refused(http.StatusConflict, domain.CodeAnotherLog)
}

func TestACursorOfAnotherLogIsRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
	log := &lineage{}
	log.become(origin.Begin("the-log", "1/1"))
	s.onLog(log)
	_, key := s.account(500)
	s.submitted(key)
	marked := s.feed(key, "/v1/events", 1)[0]["cursor"].(string)
	other := events.Marked(marked, origin.Begin("another", "1/1").Mark())
	refused := s.call(key, "GET", "/v1/events?after="+other, "").refused(http.StatusConflict, domain.CodeAnotherLog)
	if refused["next"] != nil {
		t.Errorf("it says to continue at %v", refused["next"])
	}

	// What another process has found out already is looked for.
	restored := log.Lineage().Restored(uuid.New(), domain.Position{Commit: 1, Prepare: 1})
	log.mu.Lock()
	log.next = restored
	log.mu.Unlock()
	s.call(key, "GET", "/v1/events?after="+events.Marked(marked, restored.Mark()), "").want(http.StatusOK)
}

func TestACursorBeyondTheLogsEndOrBeforeWhatIsKeptIsRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
	log := &lineage{}
	log.become(origin.Begin("the-log", "1/1"))
	s.onLog(log)
	_, key := s.account(500)
	s.submitted(key)
	s.submitted(key)
	list := s.feed(key, "/v1/events", 2)
	first, second := list[0]["cursor"].(string), list[1]["cursor"].(string)
	beyond := events.CursorAt(domain.Position{Commit: 1 << 40, Prepare: 1 << 40})
	for _, r := range []result{
		s.call(key, "GET", "/v1/events?after="+beyond, ""),
		s.call(key, "GET", "/v1/events?types=job.failed&after="+beyond, ""),
		s.call(key, "GET", "/v1/events?after="+beyond, "", "Accept", "text/event-stream"),
	} {
		next, _ := r.refused(http.StatusConflict, domain.CodeCursorAhead)["next"].(string)
		equal(t, s.call(key, "GET", "/v1/events?after="+next, "").want(http.StatusOK)["events"], any([]any{}))
	}

	at, _, _ := events.SplitCursor(second)
	log.become(log.Lineage().Trimmed(&origin.Trimmed{Commit: int64(at.Commit), Prepare: int64(at.Prepare)}))
	gone := s.call(key, "GET", "/v1/events?after="+first, "").refused(http.StatusGone, domain.CodeCursorGone)
	equal(t, gone["next"], any(second))
	s.call(key, "GET", "/v1/events?after="+second, "").want(http.StatusOK)
	s.feed(key, "/v1/events", 2) // the beginning of what there is
}
