package changes

import (
	"context"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/events"
	"humanqa/projections/jobs"
	"humanqa/projections/sessions"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// setup runs the read models that are asked about changes.
func setup(t *testing.T) *modeltest.World {
	t.Helper()
	w := modeltest.New(t, events.Projector{}, jobs.Projector, sessions.Projector)
	w.Run(w.Sup)
	return w
}

func silent() *logrus.Logger {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return log
}

// follows reads the log until stop is called, or the test ends.
func follows(t *testing.T, c *Changes) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, domain.Position{}) }()
	stop = sync.OnceFunc(func() {
		cancel()
		must.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// takes waits for what a follower is told next.
func takes(t *testing.T, told <-chan []string) []string {
	t.Helper()
	select {
	case streams := <-told:
		return streams
	case <-time.After(eventually.Patience):
		t.Fatal("nothing was told")
		return nil
	}
}

// hears waits until a follower is told of a stream.
func hears(t *testing.T, told <-chan []string, want string) {
	t.Helper()
	for !slices.Contains(takes(t, told), want) {
	}
}

// Who follows an account hears of its streams, those a checker writes too, once
// the read models show them; and never of another account's.
func TestFollowersHearOfTheirAccountsOnly(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := New(w.Log, w.DB, w.Sup.WaitFor, silent())
	ours, leave := c.Follow("acc")
	theirs, leaveTheirs := c.Follow("other")
	defer leaveTheirs()
	stop := follows(t, c)

	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	w.Log.Record(domain.JobStream("j1"), &job.ItemChecked{ItemID: "item-1", Status: job.ItemPass})
	hears(t, ours, domain.JobStream("j1"))

	leave()
	w.Log.Record(domain.JobStream("j1"), &job.ItemChecked{ItemID: "item-1", Status: job.ItemFail})
	w.Log.Record(domain.CreditsStream("acc"), &credits.Granted{LotID: "l", Amount: 1, BalanceAfter: 1})
	stop()
	select {
	case streams := <-theirs:
		t.Errorf("another account hears of %v", streams)
	default:
	}
}

// Whose streams changed may be impossible to find out; who is told nothing then would
// show what was until the next change.
func TestWhatCannotBeFoundOutIsToldToAll(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t)
	must.NoError(t, w.DB.Close())
	c := New(w.Log, w.DB, func(context.Context, domain.Position) error { return nil }, silent())
	told, leave := c.Follow("acc")
	defer leave()
	follows(t, c)
	w.Log.Record(domain.JobStream("j1"), &job.ItemChecked{ItemID: "item-1", Status: job.ItemPass})
	if streams := takes(t, told); !slices.Equal(streams, []string{Everything}) {
		t.Errorf("told was %v", streams)
	}
}

// What follows an event that nobody can read is found out as before.
func TestChangesGoOnBehindAnEventThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	w.Reach(w.Sup)
	bad := w.Log.Record(domain.JobStream("j2"), modeltest.Created("acc"))
	w.Log.Spoil(bad.Commit, true)
	w.Log.Record(domain.JobStream("j1"), &job.ItemChecked{ItemID: "item-1", Status: job.ItemPass})
	c := New(w.Log, w.DB, func(context.Context, domain.Position) error { return nil }, silent())
	told, leave := c.Follow("acc")
	defer leave()
	follows(t, c)
	hears(t, told, domain.JobStream("j1"))
}

// A checker may claim a test before the feed knows it. Its row has the account by then.
func TestAFollowerHearsOfATestThatTheFeedDoesNotKnowYet(t *testing.T) {
	t.Parallel()
	w := setup(t)
	pgtest.HoldUp(t, w.DB, "readmodel.event_streams")
	c := New(w.Log, w.DB, w.Sup.WaitFor, silent())
	told, leave := c.Follow("acc")
	defer leave()
	follows(t, c)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	hears(t, told, domain.JobStream("j1"))
	modeltest.Gather(w.Log, "s1")
	hears(t, told, domain.SessionStream("s1"))
}

// The page that shows the change is fetched once. Before the read models show it, it would
// show the state before.
func TestAFollowerHearsOnceTheReadModelsShowTheChange(t *testing.T) {
	t.Parallel()
	w := setup(t)
	waits := make(chan struct{}, 10)
	c := New(w.Log, w.DB, func(ctx context.Context, at domain.Position) error {
		waits <- struct{}{}
		return w.Sup.WaitFor(ctx, at)
	}, silent())
	told, leave := c.Follow("acc")
	defer leave()
	release := pgtest.HoldUp(t, w.DB, "readmodel.jobs")
	follows(t, c)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	<-waits
	hearsNothing(t, told)
	release()
	hears(t, told, domain.JobStream("j1"))
	if w.Count("SELECT COUNT(*) FROM readmodel.jobs WHERE id = 'j1'") == 0 {
		t.Error("it was told before it was shown")
	}
}

// hearsNothing fails if a follower was told of anything.
func hearsNothing(t *testing.T, told <-chan []string) {
	t.Helper()
	select {
	case streams := <-told:
		t.Errorf("%v was told", streams)
	default:
	}
}

// Read models may be far behind. Who looks before they show a change looks again, and
// nobody else does until they have caught up.
func TestWhileReadModelsAreBehindOnlyWhoIsConcernedLooks(t *testing.T) {
	t.Parallel()
	w := setup(t)
	caughtUp := make(chan struct{})
	c := New(w.Log, w.DB, func(ctx context.Context, at domain.Position) error {
		select {
		case <-caughtUp:
			return w.Sup.WaitFor(ctx, at)
		case <-ctx.Done():
			return ctx.Err()
		}
	}, silent())
	c.wait = time.Second
	ours, leave := c.Follow("acc")
	defer leave()
	theirs, leaveTheirs := c.Follow("other")
	defer leaveTheirs()
	follows(t, c)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	hears(t, ours, domain.JobStream("j1"))
	hears(t, ours, domain.JobStream("j1"))
	hearsNothing(t, theirs)
	close(caughtUp)
	hears(t, theirs, Everything)
}

// A page may begin to follow between a change and the read models that show it.
func TestWhoFollowsBeforeAChangeIsShownHearsOfIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	waits := make(chan struct{}, 10)
	c := New(w.Log, w.DB, func(ctx context.Context, at domain.Position) error {
		waits <- struct{}{}
		return w.Sup.WaitFor(ctx, at)
	}, silent())
	release := pgtest.HoldUp(t, w.DB, "readmodel.jobs")
	follows(t, c)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	told, leave := c.Follow("acc")
	defer leave()
	<-waits
	hearsNothing(t, told)
	release()
	takes(t, told) // everything, or the test if the reader began after the follower
	if w.Count("SELECT COUNT(*) FROM readmodel.jobs WHERE id = 'j1'") == 0 {
		t.Error("it was told before it was shown")
	}
	w.Log.Record(domain.JobStream("j2"), modeltest.Created("acc"))
	hears(t, told, domain.JobStream("j2"))
}

// The reader's wait would have the read models write each event by itself.
func TestReadModelsAreNotHurriedForNobody(t *testing.T) {
	t.Parallel()
	w := setup(t)
	waits := make(chan struct{}, 10)
	c := New(w.Log, w.DB, func(context.Context, domain.Position) error {
		waits <- struct{}{}
		return nil
	}, silent())
	stop := follows(t, c)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	w.Reach(w.Sup)
	stop()
	if len(waits) > 0 {
		t.Error("the read models were waited for")
	}
}

// A read model that has stopped is not waited for. Who is concerned looks at once, and once.
func TestAReadModelThatStoppedDelaysNoNews(t *testing.T) {
	t.Parallel()
	w := setup(t)
	stopped := &consumer.StoppedError{Name: "spending"}
	c := New(w.Log, w.DB, func(context.Context, domain.Position) error { return stopped }, silent())
	ours, leave := c.Follow("acc")
	defer leave()
	theirs, leaveTheirs := c.Follow("other")
	defer leaveTheirs()
	follows(t, c)
	for _, id := range []string{"j1", "j2", "j3"} {
		w.Log.Record(domain.JobStream(id), modeltest.Created("acc"))
		if told := takes(t, ours); !slices.Equal(told, []string{domain.JobStream(id)}) {
			t.Errorf("told was %v, want %s", told, id)
		}
	}
	hearsNothing(t, theirs)
}

// A checker hears that the queue changed, of no job in it, and of their own work.
func TestCheckersHearOfTheQueueAndOfTheirOwnWork(t *testing.T) {
	t.Parallel()
	w := setup(t)
	c := New(w.Log, w.DB, w.Sup.WaitFor, silent())
	ann, leave := c.Follow(Queue, Checker("ann"))
	defer leave()
	follows(t, c)
	heard := func(want ...string) {
		t.Helper()
		var all []string
		for len(all) < len(want) {
			all = append(all, takes(t, ann)...)
		}
		slices.Sort(all)
		if !slices.Equal(slices.Compact(all), want) {
			t.Fatalf("heard %v, want %v", all, want)
		}
	}
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acc"))
	heard(Queue)
	w.Log.Record(domain.JobStream("j1"), modeltest.Claimed("ann"))
	heard(Checker("ann"), domain.JobStream("j1"), Queue)
	w.Log.Record(domain.JobStream("j2"), modeltest.Created("acc"))
	heard(Queue)
	w.Log.Record(domain.JobStream("j2"), modeltest.Claimed("bob"))
	heard(Queue)
	w.Log.Record(domain.JobStream("j2"), &job.ItemChecked{ItemID: "i1", Status: job.ItemPass}) // bob's
	w.Log.Record(domain.JobStream("j1"), &job.ItemChecked{ItemID: "i1", Status: job.ItemPass})
	heard(Checker("ann"), domain.JobStream("j1"))

	// Of a session they belong to they hear all, as the session's.
	modeltest.Gather(w.Log, "s1")
	heard(Queue)
	w.Log.Record(domain.JobStream("s1-2"), modeltest.Claimed("bob"))
	heard(Queue)
	w.Log.Record(domain.JobStream("s1-1"), modeltest.Claimed("ann"))
	heard(Checker("ann"), domain.JobStream("s1-1"), Queue, domain.SessionStream("s1"))
	w.Log.Record(domain.JobStream("s1-2"), &job.ItemChecked{ItemID: "i1", Status: job.ItemPass}) // bob's
	heard(Checker("ann"), domain.SessionStream("s1"))
	w.Log.Record(domain.SessionStream("s1"), &session.Marked{ID: "m", PersonID: "owner", At: modeltest.Noon})
	heard(Checker("ann"), domain.SessionStream("s1"))
}

func TestWhatIsNotTakenIsMerged(t *testing.T) {
	t.Parallel()
	f := &follower{accounts: []string{"acc"}, out: make(chan []string, 1)}
	f.gather(map[string][]string{"acc": {"job-2"}, "other": {"job-9"}})
	f.gather(map[string][]string{"acc": {"job-1"}})
	f.gather(map[string][]string{"acc": {"job-2"}})
	if got := <-f.out; !slices.Equal(got, []string{"job-1", "job-2"}) {
		t.Errorf("told %v", got)
	}
	var many []string
	for i := range tooMany + 1 {
		many = append(many, domain.JobStream(string(rune('a'+i))))
	}
	f.gather(map[string][]string{"acc": many})
	f.gather(map[string][]string{"acc": {"job-1"}})
	if got := <-f.out; !slices.Equal(got, []string{Everything}) {
		t.Errorf("told %v", got)
	}
	select {
	case got := <-f.out:
		t.Errorf("told twice: %v", got)
	default:
	}
}
