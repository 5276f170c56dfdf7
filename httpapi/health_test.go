package httpapi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	logrustest "github.com/sirupsen/logrus/hooks/test"
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

// A proxy asks every second. A part that stays away is one line of the log, and another
// cause, or the next time, are lines of their own.
func TestAPartThatIsNotReadyIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, lines := logrustest.NewNullLogger()
		var found []Problem
		r := &readiness{log: log, look: func(context.Context) []Problem { return found }}
		away := Problem{Part: "log", Reason: "away", Cause: errors.New("refused")}
		behind := Problem{Part: "jobs", Reason: "still being built"}
		for _, look := range []struct {
			found []Problem
			lines int
		}{
			{[]Problem{behind}, 1}, {[]Problem{behind}, 1}, {[]Problem{behind, away}, 2}, {[]Problem{away}, 2},
			{[]Problem{{Part: "log", Reason: "away", Cause: errors.New("timeout")}}, 3}, {nil, 3}, {[]Problem{away}, 4},
			{[]Problem{away, {Part: "jobs", Reason: "one event is set aside", Note: true}}, 4},
		} {
			found = look.found
			r.problems(t.Context())
			equal(t, len(lines.AllEntries()), look.lines)
			time.Sleep(readyFor)
		}
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
