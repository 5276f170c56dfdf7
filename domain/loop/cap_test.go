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
		judged("s1", "a", "fail", "pay"), iterated("s1", "c", 3),
	}...).
		When(judge("b", "fail", "mail")).
		Events(judged("s1", "b", "fail", "mail"), ended("s1", loop.StatusMaxIterations, after(3, 15, "r-b"), alert)).
		When(judge("c", "pass")).Nothing()
}
