package loop_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/loop"
)

// An agent that always has another test under way must not run for ever.
func TestTestsUnderWayDoNotPutTheCapOff(t *testing.T) {
	t.Parallel()
	given(t, []domain.Event{
		startedWith("s1", 2, noon), iterated("s1", "a", 1), iterated("s1", "b", 2),
		outcome("s1", "a", "fail", "pay"), iterated("s1", "c", 3),
	}...).
		When(record("b", "fail", "mail")).
		Events(outcome("s1", "b", "fail", "mail"), ended("s1", loop.StatusMaxIterations, after(3, 15, "r-b"), alert)).
		When(record("c", "pass")).Nothing()
}
