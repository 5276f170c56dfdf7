package pagetest

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sirupsen/logrus"
)

// Shared is one service for all tests of a binary that look at nothing but accounts,
// checkers and people of their own. It starts with the first of them, and Main ends it after
// all tests. Whatever it logs as an error, and each stream that a read model sets aside,
// fails the run.
type Shared struct {
	Pages Pages

	once    sync.Once
	service *Service
}

// In is the service for a test.
func (s *Shared) In(t *testing.T) *Service {
	t.Helper()
	s.once.Do(func() {
		log := logrus.New()
		log.SetOutput(io.Discard)
		log.AddHook(whole)
		whole.TB = t
		s.service = start(whole, log, s.Pages)
		whole.Cleanup(func() { whole.sound(s.service) })
	})
	if s.service == nil {
		t.Fatal("the shared service did not start: another test says why")
	}
	return s.service.In(t)
}

// whole is the run of all tests, which owns the shared service.
var whole = &run{}

// run is a test for what it starts, though it outlives each of them. The TB is the first
// test that asks, which fails if the start does.
type run struct {
	testing.TB

	mu       sync.Mutex
	cleanups []func()
	failures []string
}

// Context never ends: each part of the service has one of its own.
func (*run) Context() context.Context { return context.Background() }

// Cleanup keeps a function until all tests have ended.
func (r *run) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// Errorf fails the run.
func (r *run) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// Levels and Fire make the run a hook of the service's log.
func (*run) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel}
}

// Fire fails the run for an entry of the log.
func (r *run) Fire(e *logrus.Entry) error {
	r.Errorf("the shared service logs: %s %v", e.Message, e.Data)
	return nil
}

// sound fails the run for each read model that does not go on.
func (r *run) sound(s *Service) {
	list, err := s.Consumers.Status(context.Background())
	if err != nil {
		r.Errorf("the read models of the shared service: %v", err)
	}
	for _, status := range list {
		if len(status.Failed()) > 0 {
			r.Errorf("%s of the shared service does not go on: %+v, set aside %+v", status.Name, status.Failure, status.SetAside)
		}
	}
}

// end stops the service, and gives the exit code.
func (r *run) end(code int) int {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	if len(r.failures) == 0 {
		return code
	}
	fmt.Fprintln(os.Stderr, strings.Join(r.failures, "\n"))
	return max(code, 1)
}
