package wire

import (
	"context"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

// refused says that the owner gets none at once.
func (q *Quota) refused(t *testing.T, owner string, n int64) {
	t.Helper()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Acquire(now, owner, n); !domain.IsKind(err, domain.KindUnavailable) {
		t.Errorf("%s: got %v", owner, err)
	}
}

func (q *Quota) taken(t *testing.T, owner string, n int64) {
	t.Helper()
	if err := q.Acquire(t.Context(), owner, n); err != nil {
		t.Fatalf("%s: %v", owner, err)
	}
}

func TestNobodyTakesMoreThanThereIsOrThanTheirShare(t *testing.T) {
	t.Parallel()
	p := NewQuota(5, 3, time.Minute)
	p.taken(t, "a", 2)
	p.refused(t, "a", 2) // though there are as many
	p.taken(t, "b", 3)
	p.refused(t, "c", 1)

	waited := make(chan error, 1)
	go func() { waited <- p.Acquire(t.Context(), "a", 3) }()
	p.Release("a", 2)
	p.refused(t, "c", 3)
	p.Release("b", 3)
	must.NoError(t, <-waited)
	p.taken(t, "c", 2)
	p.Release("c", 2)
	p.Release("a", 3)
	if left := p.Holders(); len(left) > 0 || p.free != 5 {
		t.Errorf("%v hold what was given back, %d are free", left, p.free)
	}
}
