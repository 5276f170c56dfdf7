package timers

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/policy"
	"humanqa/internal/scheduler"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// reviews are due as soon as their job is submitted.
const reviews = "review"

func TestAccountsTakeTurnsWherePlacesAreShared(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	for j := range 10 {
		w.Log.Record(fmt.Sprintf("job-a%d", j), &job.Created{Submission: job.Submission{AccountID: "acc-a", Type: job.AIReview}})
	}
	w.Log.Record("job-b", &job.Created{Submission: job.Submission{AccountID: "acc-b", Type: job.AIReview}})
	w.reachTimers()
	take := func(limit int) (byAccount map[string]int, taken []policy.Timer) {
		t.Helper()
		taken, err := w.timers().TakeDue(w.Ctx(), []string{reviews}, limit, 3, time.Hour)
		must.NoError(t, err)
		byAccount = map[string]int{}
		for _, due := range taken {
			byAccount[due.AccountID]++
		}
		return byAccount, taken
	}
	want := func(got map[string]int, a, b int) {
		t.Helper()
		if got["acc-a"] != a || got["acc-b"] != b {
			t.Errorf("taken: %v, want %d of the first account and %d of the second", got, a, b)
		}
	}

	got, first := take(2) // one of each, although the first account's are older
	want(got, 1, 1)
	got, _ = take(100)
	want(got, 2, 0) // its share is three
	got, _ = take(100)
	want(got, 0, 0)
	for _, due := range first {
		w.settleTimers(policy.Outcome{Timer: due})
	}
	got, _ = take(100)
	want(got, 1, 0)
	w.endLeases() // a lease that has ended holds no place
	got, _ = take(100)
	want(got, 3, 0)
}

// hanging is a writer whose reviews of one account's jobs wait for a page that
// never comes.
type hanging struct {
	policy.Commands // nothing else is asked of it
	began           chan string
	done            chan string
}

func (h hanging) ReviewJob(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error) {
	if cause.AccountID == "acc-hangs" {
		h.began <- jobID
		<-ctx.Done()
		return domain.Position{}, domain.Unavailable(ctx.Err())
	}
	h.done <- jobID
	return domain.Position{}, nil
}

func (h hanging) AnalyseJob(_ context.Context, _ command.Cause, jobID string) (domain.Position, error) {
	h.done <- jobID
	return domain.Position{}, nil
}

func TestReviewsOfAPageThatHangsAreNotFeltByOtherAccounts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	for j := range 100 {
		w.Log.Record(fmt.Sprintf("job-h%d", j), &job.Created{Submission: job.Submission{AccountID: "acc-hangs", Type: job.AIReview}})
	}
	w.reachTimers()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	h := hanging{began: make(chan string, 100), done: make(chan string, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		scheduler.New(New(w.DB, pgtest.DSN(t, w.DB)), quiet, policiesOf(h, "analysis", "review")...).Run(ctx)
	}()
	t.Cleanup(sync.OnceFunc(func() { cancel(); <-ended }))
	for range policiesOf(h, "review")[0].Pool.PerAccount {
		<-h.began
	}

	for _, jobID := range []string{"reported", "reviewed"} {
		began := time.Now()
		if jobID == "reported" {
			w.Log.Record("job-reported", &job.Completed{ReportID: "r"})
		} else {
			w.Log.Record("job-reviewed", &job.Created{Submission: job.Submission{AccountID: "acc-other", Type: job.AIReview}})
		}
		select {
		case got := <-h.done:
			if t.Logf("%s is done after %s", got, time.Since(began)); got != jobID {
				t.Errorf("%s is done, want %s", got, jobID)
			}
		case <-time.After(eventually.Patience):
			t.Fatalf("%s waits for another account's pages", jobID)
		}
	}
	if n := len(h.began); n > 0 {
		t.Errorf("the account has %d places more than its share", n)
	}
}
