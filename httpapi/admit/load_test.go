package admit

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

var (
	aWrite  = wire.Match{Audience: wire.Clients, Route: &wire.Route{Write: true}}
	aRead   = wire.Match{Audience: wire.Checkers, Route: &wire.Route{}}
	aHealth = wire.Match{Audience: wire.Public, Route: &wire.Route{}}
)

func quietLoad(t *testing.T) *LoadLimit {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	return NewLoadLimit(prometheus.NewRegistry(), log)
}

// fill takes all places of the lane, and gives them back by the function.
func fill(t *testing.T, l *LoadLimit, m wire.Match, n int) (empty func()) {
	t.Helper()
	leaves := make([]func(), n)
	for i := range leaves {
		var err error
		if leaves[i], err = l.Enter(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, leave := range leaves {
			leave()
			leave() // a second time gives nothing back
		}
	}
}

func refused(t *testing.T, err error) {
	t.Helper()
	var known *domain.Error
	if !errors.As(err, &known) || known.Kind != domain.KindUnavailable {
		t.Fatalf("it is %v, no refusal", err)
	}
}

func TestWhatIsTooMuchIsRefusedAtOnceAndReadsGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := quietLoad(t)
		empty := fill(t, l, aWrite, atOnce)
		served := make(chan error, mostWaiting)
		for range mostWaiting {
			go func() {
				leave, err := l.Enter(t.Context(), aWrite)
				if err == nil {
					leave()
				}
				served <- err
			}()
		}
		synctest.Wait()
		began := time.Now()
		_, err := l.Enter(t.Context(), aWrite)
		refused(t, err)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the one too many waits %s", waited)
		}
		for _, m := range []wire.Match{aRead, aHealth} {
			leave, err := l.Enter(t.Context(), m)
			if err != nil {
				t.Fatalf("%+v: %v", m, err)
			}
			leave()
		}
		empty()
		for range mostWaiting {
			if err := <-served; err != nil {
				t.Fatal(err)
			}
		}
		if got := testutil.ToFloat64(l.refused.WithLabelValues("writes")); got != 1 {
			t.Errorf("%v are counted as refused", got)
		}
		fill(t, l, aWrite, atOnce)() // every place is there again
	})
}

func TestAWaitIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := quietLoad(t)
		empty := fill(t, l, aRead, atOnce)
		began := time.Now()
		_, err := l.Enter(t.Context(), aRead)
		refused(t, err)
		if waited := time.Since(began); waited != longestWait {
			t.Errorf("it was refused after %s", waited)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = l.Enter(gone, aRead); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that left is told %v", err)
		}
		// One that was let in before waits as long as its context.
		time.AfterFunc(10*longestWait, empty)
		leave, err := l.Return(t.Context(), aRead, "")
		if err != nil {
			t.Fatal(err)
		}
		leave()
		if n := l.reads.fresh.Len() + l.reads.returning.Len(); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

func TestWhatWasLetInGoesBeforeWhatIsNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := quietLoad(t)
		empty := fill(t, l, aWrite, atOnce-1)
		leave, err := l.Enter(t.Context(), aWrite)
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan string, 2)
		for name, take := range map[string]func() (func(), error){
			"let in": func() (func(), error) { return l.Return(t.Context(), aWrite, "ann") },
			"new":    func() (func(), error) { return l.Enter(t.Context(), aWrite) },
		} {
			go func() {
				if _, err := take(); err == nil {
					served <- name
				}
			}()
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		if len(served) != 1 {
			t.Fatalf("one place is given to %d", len(served))
		}
		if first := <-served; first != "let in" {
			t.Errorf("the place goes to the one that is %s", first)
		}
		empty()
		<-served
	})
}

func TestTheReadsOfAnAccountWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := quietLoad(t)
		leaves := make([]func(), readsOfAccount)
		for i := range leaves {
			var err error
			if leaves[i], err = l.Return(t.Context(), aRead, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		entered := make(chan func())
		go func() {
			leave, err := l.Return(t.Context(), aRead, "ann")
			if err != nil {
				t.Error(err)
			}
			entered <- leave
		}()
		synctest.Wait()
		select {
		case <-entered:
			t.Fatal("a read too many of the account is under way")
		default:
		}
		for _, m := range []struct {
			match   wire.Match
			account string
		}{{aRead, "bob"}, {aWrite, "ann"}, {aRead, ""}} {
			leave, err := l.Return(t.Context(), m.match, m.account) // which do not wait
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
		leaves[0]()
		leaves[0]() // a second time gives nothing back
		leave := <-entered
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Return(ended, aRead, "ann")
		refused(t, err)
		leave()
	})
}
