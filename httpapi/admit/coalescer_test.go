package admit

import (
	"context"
	"errors"
	"sync"
	"testing"

	"humanqa/internal/testing/eventually"
)

// held asks once for key and is held up there until release.
func held(t *testing.T, g *coalescer[int], key string) (release func()) {
	t.Helper()
	under, on, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_, _ = g.lookUp(t.Context(), key, func(context.Context, int) ([]int, error) {
			close(under)
			<-on
			return []int{0}, nil
		})
	}()
	<-under
	return func() { close(on); <-done }
}

func (g *coalescer[R]) waiting(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queues[key])
}

func TestWhoComesWhileAnotherIsAskedForIsAskedForWithAllWhoWait(t *testing.T) {
	t.Parallel()
	var g coalescer[int]
	release := held(t, &g, "a")
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		sizes []int
		got   = map[int]int{}
	)
	ask := func(ctx context.Context) (int, error) {
		return g.lookUp(ctx, "a", func(_ context.Context, n int) ([]int, error) {
			mu.Lock()
			defer mu.Unlock()
			sizes = append(sizes, n)
			answers := make([]int, n)
			for i := range answers {
				answers[i] = i
			}
			return answers, nil
		})
	}
	for range 5 {
		all.Go(func() {
			answer, err := ask(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if got[answer]++; err != nil {
				t.Error(err)
			}
		})
	}
	eventually.True(t, "five wait", func() bool { return g.waiting("a") == 5 })

	t.Run("others are not waited for", func(t *testing.T) {
		other, err := g.lookUp(t.Context(), "b", func(_ context.Context, n int) ([]int, error) { return []int{n}, nil })
		if other != 1 || err != nil {
			t.Errorf("got %d, %v, want one by itself", other, err)
		}
	})
	t.Run("who goes away ends nothing", func(t *testing.T) {
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := ask(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	release()
	all.Wait()
	if len(sizes) != 1 || sizes[0] != 6 {
		t.Errorf("asked for %v at a time, want the five and the one that went away at once", sizes)
	}
	for answer, askers := range got {
		if askers != 1 {
			t.Errorf("%d got the answer %d", askers, answer)
		}
	}
	eventually.True(t, "nothing is kept", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return len(g.queues) == 0
	})
}

func TestAnErrorIsEverybodysWhoWaited(t *testing.T) {
	t.Parallel()
	var g coalescer[int]
	release := held(t, &g, "a")
	errs := make(chan error, 3)
	for range 3 {
		go func() {
			_, err := g.lookUp(t.Context(), "a", func(context.Context, int) ([]int, error) { return nil, errors.New("no database") })
			errs <- err
		}()
	}
	eventually.True(t, "three wait", func() bool { return g.waiting("a") == 3 })
	release()
	for range 3 {
		if err := <-errs; err == nil || err.Error() != "no database" {
			t.Errorf("got %v", err)
		}
	}
	if answer, err := g.lookUp(t.Context(), "a", func(context.Context, int) ([]int, error) { return []int{7}, nil }); answer != 7 || err != nil {
		t.Errorf("afterwards: %d, %v", answer, err)
	}
}
