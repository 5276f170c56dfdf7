package apitest

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain/audit"
	"humanqa/internal/testing/pgtest"
)

// one is the binary's service, which the first test that shares it starts.
var one struct {
	once    sync.Once
	service *Service
	life    life
	shown   sync.Map // id, to the name of the test that was shown it
}

// Main runs a package's tests, and then ends the service that they shared. What went wrong
// with that service fails the run, since no test may have noticed.
func Main(m *testing.M) int { return pgtest.Main(run{m}) }

type run struct{ m *testing.M }

// Run runs the tests while the database server is up.
func (r run) Run() int {
	// What a test makes is garbage at once. Memory is plenty, and processors are few.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	code := r.m.Run()
	if one.service != nil {
		one.service.inspect()
		one.life.end()
	}
	for _, fault := range one.life.faults {
		fmt.Fprintln(os.Stderr, "the shared service:", fault)
		code = max(code, 1)
	}
	return code
}

// Shared is the binary's one service, for one of the tests that share it.
func Shared(t *testing.T) *Service {
	t.Helper()
	one.once.Do(func() {
		one.life.TB = t
		one.service = start(&one.life)
		one.service.shared = true
	})
	if one.service == nil {
		t.Fatal("the shared service has not started; the test that was first says why")
	}
	return one.service.in(t)
}

// inspect looks for what no answer told of: a part that failed, a stream that a read model
// goes on without, an invariant of the log that is broken, an error that was logged.
func (s *Service) inspect() {
	s.Shown(s.Log.Head(), nil)
	states, err := s.Consumers.Status(context.Background())
	if err != nil {
		s.T.Errorf("the state of the read models: %v", err)
	}
	for _, state := range states {
		if state.Failure != nil || len(state.SetAside) > 0 {
			s.T.Errorf("%s: failure %v, set aside %v", state.Name, state.Failure, state.SetAside)
		}
	}
	check := audit.New()
	for _, e := range s.Log.All() {
		check.See(e)
	}
	for _, finding := range check.Findings(time.Now()) {
		s.T.Errorf("%s", finding)
	}
	for line := range strings.Lines(s.Words.String()) {
		if strings.Contains(line, "level=error") {
			s.T.Errorf("%s", line)
		}
	}
}

// Apart fails the test if its caller was shown an id that another test was shown before:
// both share the service, and neither has the other's account (invariant 16). The ids that
// the caller sent are no news, those of the documentation are everybody's, and the queue has
// every account's jobs.
func (s *Service) Apart(r *http.Request, sent, answer string) {
	s.T.Helper()
	path := r.URL.Path
	if !s.shared || !strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1/openapi") || path == "/v1/checker/queue" {
		return
	}
	test, _, _ := strings.Cut(s.T.Name(), "/")
	for found := range ids(answer) {
		first, _ := one.shown.LoadOrStore(found, test)
		if first != test && !strings.Contains(r.URL.String(), found) && !strings.Contains(sent, found) {
			s.T.Errorf("%s %s shows %s, which %s was shown before", r.Method, r.URL, found, first)
		}
	}
}

// ids gives what has the form of an id.
func ids(text string) iter.Seq[string] {
	const whole, first = len("018f2f6e-7c1a-7d3b-9a52-6f0a3b1c2d4e"), len("018f2f6e")
	return func(yield func(string) bool) {
		for at := first; at+whole-first <= len(text); at++ {
			hyphen := strings.IndexByte(text[at:], '-')
			if hyphen < 0 || at+hyphen+whole-first > len(text) {
				return
			}
			at += hyphen
			found := text[at-first : at-first+whole]
			if _, err := uuid.Parse(found); err == nil && !yield(found) {
				return
			}
		}
	}
}

// Claimable fails the test if it claims whatever job comes next: on a shared service that
// is any test's.
func (s *Service) Claimable(r *http.Request, sent string) {
	s.T.Helper()
	next := sent == "" || sent[0] == '{' && !strings.Contains(sent, "jobId")
	if s.shared && next && r.Method == http.MethodPost && r.URL.Path == "/v1/checker/claims" {
		s.T.Fatal("the queue of a shared service has the jobs of all tests: claim one by its id, or use a service of your own")
	}
}

// life is a TB that goes on until the binary ends: what a test would clean up at its end
// waits for that.
type life struct {
	testing.TB // of the test that came first

	mu     sync.Mutex
	ends   []func()
	faults []string
}

func (l *life) Context() context.Context { return context.Background() }
func (l *life) Helper()                  {}

func (l *life) Cleanup(end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, end)
}

func (l *life) Errorf(format string, args ...any) { l.fault(fmt.Sprintf(format, args...)) }
func (l *life) Error(args ...any)                 { l.fault(fmt.Sprint(args...)) }

func (l *life) fault(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, strings.TrimSpace(text))
}

// Fatal and Fatalf fail the first test while it starts the service, and the run later.
func (l *life) Fatal(args ...any) {
	l.fault(fmt.Sprint(args...))
	if one.service == nil {
		l.TB.Fatal(args...)
	}
}

func (l *life) Fatalf(format string, args ...any) { l.Fatal(fmt.Sprintf(format, args...)) }

func (l *life) TempDir() string {
	dir, err := os.MkdirTemp("", "apitest")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			l.Error(err)
		}
	})
	return dir
}

func (l *life) end() {
	for _, end := range slices.Backward(l.ends) {
		end()
	}
}
