package repository

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// decoded is an event as a log gives it: its memory is its own.
func decoded[E any](t testing.TB, event E) *E {
	t.Helper()
	data, err := json.Marshal(event)
	must.NoError(t, err)
	own := new(E)
	must.NoError(t, json.Unmarshal(data, own))
	return own
}

// longJob is a job of so many items, with as much about them as clients and
// checkers may write; to its end, with a report and an analysis, or before.
func longJob(t testing.TB, items int, ended bool) (st job.State) {
	t.Helper()
	created := job.Created{CreatedAt: time.Now()}
	created.URL, created.Title, created.Description = "https://example.com/shop", "Checkout", strings.Repeat("Buy a thing. ", 100)
	done := job.Completed{ReportID: uuid.NewString(), Summary: strings.Repeat("It works. ", 50)}
	analysis := job.AIReportReady{}
	st = job.State{}
	for i := range items {
		item := job.Item{ID: fmt.Sprint("item-", i), Key: fmt.Sprint("step-", i), Description: strings.Repeat("Look at it. ", 20), Severity: job.Major}
		created.Items = append(created.Items, item)
		done.Items = append(done.Items, job.ReportItem{Item: item, Status: job.ItemFail, Note: strings.Repeat("Broken. ", 50), MoreScreenshotURLs: []string{uuid.NewString(), uuid.NewString()}})
		analysis.Bugs = append(analysis.Bugs, job.Bug{ItemID: item.ID, Title: "Broken", Description: item.Description, ReproductionSteps: []string{"Open it.", "Wait."}})
	}
	st = job.Evolve(st, decoded(t, created))
	st = job.Evolve(st, decoded(t, job.Claimed{CheckerID: "ann", Token: 1}))
	for _, i := range done.Items {
		st = job.Evolve(st, decoded(t, job.ItemChecked{ItemID: i.ID, Status: i.Status, Note: i.Note, MoreScreenshotURLs: i.MoreScreenshotURLs}))
		st = job.Evolve(st, decoded(t, job.FindingAdded{Item: i.Item, Status: i.Status, Note: i.Note}))
	}
	if ended {
		st = job.Evolve(st, decoded(t, done))
		st = job.Evolve(st, decoded(t, analysis))
	}
	return st
}

// The heap is the process's: this test is by itself.
func TestTheSizeOfAJobIsWhatItTakes(t *testing.T) {
	for _, c := range []struct {
		jobs, items int
		ended       bool
	}{{1000, 0, false}, {1000, 1, true}, {20, 100, false}, {20, 100, true}} {
		jobs := make([]job.State, c.jobs)
		heap := func() int {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc)
		}
		before := heap()
		for i := range jobs {
			jobs[i] = longJob(t, c.items, c.ended)
		}
		took, said := heap()-before+len(jobs)*int(reflect.TypeFor[job.State]().Size()), 0
		for i := range jobs {
			said += sizeOf(&jobs[i])
		}
		t.Logf("%d items: %d bytes a job, said to be %d", c.items, took/c.jobs, said/c.jobs)
		if said < took*3/4 || said > took*4/3 {
			t.Errorf("a job of %d items takes %d bytes, not %d", c.items, took/c.jobs, said/c.jobs)
		}
	}
}

func TestTheStatesThatAreKeptAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	const kept = 5
	log := logtest.New()
	s := New(log, time.Now, 1000, notes)
	long := strings.Repeat("x", 10_000)
	run := func(stream, text string) {
		t.Helper()
		_, err := Decide(t.Context(), s, domain.Cause{}, stream, noted(text))
		must.NoError(t, err)
		s.Wait()
	}
	state := []string{long}
	s.MaxBytes = kept * sizeOf(&state)
	streams := make([]string, 20)
	for i := range streams {
		streams[i] = domain.JobStream(uuid.NewString())
		run(streams[i], long)
		run(streams[0], fmt.Sprint(i)) // is always in use
		if s.bytes > s.MaxBytes {
			t.Fatalf("after %d streams there are %d bytes, more than %d", i+1, s.bytes, s.MaxBytes)
		}
	}
	held := 0
	for _, w := range s.writers {
		held += sizeOf(&w.state)
	}
	if len(s.writers) != kept-1 || held != s.bytes { // the one in use has grown
		t.Errorf("%d streams are kept, of %d bytes; %d were counted", len(s.writers), held, s.bytes)
	}
	for i, loads := range map[int]int{0: 0, 19: 0, 1: 1} {
		before := log.Loads()
		run(streams[i], "again")
		if got := log.Loads() - before; got != loads {
			t.Errorf("stream %d was loaded %d times, want %d", i, got, loads)
		}
	}
}

func TestLongJobsLeaveTheMemory(t *testing.T) {
	t.Parallel()
	s := New(logtest.New(), time.Now, 1000, job.Evolve)
	one := longJob(t, 100, false)
	s.MaxBytes = 4*sizeOf(&one) + 1
	for range 20 {
		stream := domain.JobStream(uuid.NewString())
		w := s.writer(stream)
		w.state, w.loaded, w.begun = longJob(t, 100, false), true, true
		if _, err := Read(t.Context(), s, stream, func(st job.State) int { return len(st.Items) }); err != nil {
			t.Fatal(err)
		}
		s.Wait()
	}
	if n := len(s.writers); n != 4 || s.bytes > s.MaxBytes {
		t.Errorf("%d jobs are kept, of %d bytes, where %d may be", n, s.bytes, s.MaxBytes)
	}
}
