package httpapi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadinessIsLookedAtOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		r := &readiness{log: quiet(), look: func(context.Context) []Problem {
			looks++
			return []Problem{{Part: "log", Reason: "away", Cause: errors.New("x")}}
		}}
		for range 3 {
			equal(t, len(r.problems(t.Context())), 1)
		}
		equal(t, looks, 1)
		time.Sleep(readyFor)
		r.problems(t.Context())
		equal(t, looks, 2)
	})
}

func TestOneLookAtReadinessServesAllWhoAskMeanwhile(t *testing.T) {
	t.Parallel()
	var looks atomic.Int32
	begun, proceed := make(chan struct{}), make(chan struct{})
	r := &readiness{log: quiet(), look: func(ctx context.Context) []Problem {
		if looks.Add(1) == 1 {
			close(begun)
		}
		<-proceed
		if ctx.Err() != nil {
			return []Problem{{Part: "log", Reason: "the first to ask has hung up"}}
		}
		return nil
	}}
	first, hangUp := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() { r.problems(first) })
	<-begun
	for range 8 {
		asking.Go(func() { equal(t, r.problems(t.Context()), []Problem(nil)) })
	}
	hangUp()
	close(proceed)
	asking.Wait()
	equal(t, looks.Load(), int32(1))
}
