package eventstore

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestWhatIsAppendedIsLoaded(t *testing.T) {
	t.Parallel()
	n, c := setup(t)
	first := []domain.NewEvent{newEvent(&job.Created{Submission: job.Submission{URL: "https://example.com/?a<b&c"}, Items: []job.Item{{ID: "1"}}}), note("b")}
	second := []domain.NewEvent{note("c")}

	w1, err := c.Append(t.Context(), "job-1", domain.NoStream, first)
	must.NoError(t, err)
	w2, err := c.Append(t.Context(), "job-1", 1, second)
	must.NoError(t, err)
	if w1.Revision != 1 || w2.Revision != 2 || w2.Position.Commit != uint64(n.node.Head()) {
		t.Errorf("written %+v then %+v, node's head %d", w1, w2, n.node.Head())
	}
	got := load(t, c, "job-1")
	if len(got) != 3 {
		t.Fatalf("loaded %d events", len(got))
	}
	for i, want := range append(first, second...) {
		want.Meta.Schema = Version(want.Event.EventType())
		r := got[i]
		if r.ID != want.ID || r.Stream != "job-1" || r.Revision != uint64(i) || r.Type != want.Event.EventType() {
			t.Errorf("event %d is %+v", i, r)
		}
		if !reflect.DeepEqual(r.Event, want.Event) || !reflect.DeepEqual(r.Meta, want.Meta) {
			t.Errorf("event %d: got %+v %+v, want %+v %+v", i, r.Event, r.Meta, want.Event, want.Meta)
		}
	}
	if got[2].Position != w2.Position {
		t.Errorf("loaded at %s, written at %s", got[2].Position, w2.Position)
	}
	if head, err := c.Head(t.Context()); err != nil || head != w2.Position {
		t.Errorf("head %s, %v", head, err)
	}
}

func TestAStreamThatDoesNotExistHasNoEvents(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	if got := load(t, c, "job-none"); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	if head, err := c.Head(t.Context()); err != nil || head != (domain.Position{}) {
		t.Errorf("head of an empty log: %s, %v", head, err)
	}
}

func TestAWriterBehindIsToldSo(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	grow(t, c, "job-1", 0, 2)
	for _, expected := range []domain.ExpectedRevision{domain.NoStream, 0, 7} {
		if _, err := c.Append(t.Context(), "job-1", expected, []domain.NewEvent{note("x")}); !errors.Is(err, domain.ErrWrongRevision) {
			t.Errorf("at %d: %v", expected, err)
		}
	}
	if got := load(t, c, "job-1"); len(got) != 2 {
		t.Errorf("%d events", len(got))
	}
}

func TestARepeatedAppendIsTheSameWrite(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	events := []domain.NewEvent{note("a"), note("b")}
	first, err := c.Append(t.Context(), "job-1", domain.NoStream, events)
	must.NoError(t, err)
	grow(t, c, "job-1", 2, 1)
	again, err := c.Append(t.Context(), "job-1", domain.NoStream, events)
	if err != nil || again != first {
		t.Errorf("again %+v, %v; first %+v", again, err, first)
	}
	if got := load(t, c, "job-1"); len(got) != 3 {
		t.Errorf("%d events", len(got))
	}
}

func TestBadAppendsAreRefused(t *testing.T) {
	t.Parallel()
	c := setupSmall(t)
	for name, events := range map[string][]domain.NewEvent{
		"no event": nil,
		"no id":    {{Event: &job.Released{}}},
		"no type":  {{ID: uuid.New(), Event: unregistered{}}},
	} {
		if _, err := c.Append(t.Context(), "job-1", domain.NoStream, events); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	// Each too small to be stored in parts, together above the node's limit.
	var events []domain.NewEvent
	for range 300 {
		events = append(events, note(strings.Repeat("x", 4000)))
	}
	if _, err := c.Append(t.Context(), "job-1", domain.NoStream, events); !errors.Is(err, domain.ErrRefused) || errors.Is(err, domain.ErrUnknownOutcome) {
		t.Errorf("too large: %v", err)
	}
	if got := load(t, c, "job-1"); len(got) != 0 {
		t.Errorf("%d events", len(got))
	}
}

// The caller cannot mend it, and shorter texts would not help.
func TestAnAppendWithoutTheRightIsUnavailable(t *testing.T) {
	t.Parallel()
	n, err := node.Start(t.Context(), node.Config{
		DSN: pgtest.NewDSN(t), Listen: "localhost:0", CertDir: filepath.Join(t.TempDir(), "certs"), Log: quietLog()})
	must.NoError(t, err)
	t.Cleanup(func() { _ = n.Close(t.Context()) })
	c, err := Open(strings.Replace(n.ConnectionStrings()[0], "esdb://", "esdb://admin:guessed@", 1), quietLog())
	must.NoError(t, err)
	defer func() { must.NoError(t, c.Close()) }()
	_, err = c.Append(t.Context(), "job-1", domain.NoStream, []domain.NewEvent{newEvent(&job.Released{})})
	if !domain.IsKind(err, domain.KindUnavailable) || errors.Is(err, domain.ErrRefused) || errors.Is(err, domain.ErrUnknownOutcome) {
		t.Errorf("got %v", err)
	}
}

type unregistered struct{}

func (unregistered) EventType() string { return "job.unheard_of" }

func TestADeletedStreamIsAnErrorToBoth(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	grow(t, c, "job-1", 0, 1)
	_, _, err := call(t.Context(), c.connector(), func(ctx context.Context, client *esdb.Client) (*esdb.DeleteResult, error) {
		return client.TombstoneStream(ctx, "job-1", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Revision(0)})
	})
	must.NoError(t, err)
	if _, err := c.Append(t.Context(), "job-1", 0, []domain.NewEvent{note("x")}); !errors.Is(err, ErrStreamDeleted) {
		t.Errorf("append: %v", err)
	}
	if err := c.Load(t.Context(), "job-1", 0, func(domain.Recorded) error { return nil }); !errors.Is(err, ErrStreamDeleted) {
		t.Errorf("load: %v", err)
	}
}

// The connection is cut after the node has written, before it has said so.
func TestAnUnknownOutcomeIsSentAgainAndWrittenOnce(t *testing.T) {
	t.Parallel()
	n, _ := setup(t)
	p := newProxy(t, n.socket)
	c := connect(t, p.socket, defaultLimits)
	for i := range 2 * connections { // every connection is up
		grow(t, c, fmt.Sprintf("job-warm-%d", i), 0, 1)
	}

	before := n.node.Head()
	p.mute.Store(true)
	type result struct {
		written domain.AppendResult
		err     error
	}
	done := make(chan result, 1)
	event := note("once")
	go func() {
		w, err := c.Append(t.Context(), "job-1", domain.NoStream, []domain.NewEvent{event})
		done <- result{w, err}
	}()
	eventually.True(t, "the node writes", func() bool { return n.node.Head() == before+1 })
	p.mute.Store(false)
	p.cut()

	r := <-done
	if r.err != nil || r.written.Revision != 0 || r.written.Position.Commit != uint64(before+1) {
		t.Errorf("%+v", r)
	}
	if got := load(t, c, "job-1"); len(got) != 1 || got[0].ID != event.ID {
		t.Errorf("loaded %+v", got)
	}
	if n.node.Head() != before+1 {
		t.Errorf("head moved from %d to %d", before, n.node.Head())
	}
}

func TestANodeThatSaysNothingIsNoticed(t *testing.T) {
	t.Parallel()
	n, _ := setup(t)
	p := newProxy(t, n.socket)
	c := connect(t, p.socket, limits{call: 200 * time.Millisecond, patience: time.Second, quiet: time.Minute})
	read := func() error { return c.Load(t.Context(), "job-1", 0, func(domain.Recorded) error { return nil }) }
	tries := 0
	eventually.True(t, "an append is sent", func() bool {
		p.mute.Store(false)
		p.cut()
		for range 2 * connections { // each has an open one; a busy machine may take longer than the limits
			eventually.True(t, "the client is connected", func() bool { return read() == nil })
		}
		p.mute.Store(true)
		tries++
		_, err := c.Append(t.Context(), fmt.Sprint("job-", tries), domain.NoStream, []domain.NewEvent{note("x")})
		sent := errors.Is(err, domain.ErrUnknownOutcome)
		if !sent && !domain.IsKind(err, domain.KindUnavailable) { // the latter: its connection is not open again
			t.Fatalf("append: %v", err)
		}
		return sent
	})
	if err := read(); !domain.IsKind(err, domain.KindUnavailable) {
		t.Errorf("load: %v", err)
	}
	p.mute.Store(false)
	p.cut()
	eventually.True(t, "the client finds back", func() bool { return read() == nil })
}

func TestWithoutANodeNothingIsWrittenAndNobodyWaitsForEver(t *testing.T) {
	t.Parallel()
	n, _ := setup(t)
	c := connect(t, n.socket+"-nobody", limits{call: 100 * time.Millisecond, patience: 300 * time.Millisecond, quiet: time.Minute})
	_, err := c.Append(t.Context(), "job-1", domain.NoStream, []domain.NewEvent{note("x")})
	if !domain.IsKind(err, domain.KindUnavailable) || errors.Is(err, domain.ErrUnknownOutcome) {
		t.Errorf("append: %v", err)
	}
	if _, err = c.Head(t.Context()); !domain.IsKind(err, domain.KindUnavailable) {
		t.Errorf("head: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Load(ctx, "job-1", 0, func(domain.Recorded) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("load: %v", err)
	}
}

func TestAClosedClientSaysSo(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	grow(t, c, "job-1", 0, 1)
	must.NoError(t, c.Close())
	if _, err := c.Append(t.Context(), "job-1", 0, []domain.NewEvent{note("x")}); !errors.Is(err, ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if err := c.Load(t.Context(), "job-1", 0, func(domain.Recorded) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Errorf("load: %v", err)
	}
	if err := NewFeed(c, quietLog()).Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("feed: %v", err)
	}
}

// Many writers go through a crash of the node: each acknowledged event is there
// once, in its writer's order, and nothing else is.
func TestWritersSurviveACrashOfTheNode(t *testing.T) {
	t.Parallel()
	n, c := setup(t)
	const writers, events = 24, 60
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			stream := fmt.Sprintf("job-%d", w)
			for i := range events {
				if _, err := c.Append(t.Context(), stream, domain.ExpectedRevision(i-1), []domain.NewEvent{note(fmt.Sprint(i))}); err != nil {
					t.Errorf("%s@%d: %v", stream, i, err)
					return
				}
			}
		})
	}
	for _, at := range []int64{writers * events / 4, writers * events / 2} {
		eventually.True(t, "the log grows", func() bool { return n.node.Head() >= at })
		n.stop()
		n.start()
	}
	wg.Wait()
	if got := n.node.Head(); got != writers*events {
		t.Errorf("head %d, want %d", got, writers*events)
	}
	for w := range writers {
		for i, r := range load(t, c, fmt.Sprintf("job-%d", w)) {
			if noteOf(r) != fmt.Sprint(i) {
				t.Errorf("job-%d@%d is %q", w, i, noteOf(r))
			}
		}
	}
}

func TestAPanicOfTheLibraryIsAnError(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	k := c.connector()
	_, _, err := call(t.Context(), k, func(context.Context, *esdb.Client) (int, error) { panic("unreachable code") })
	if !errors.Is(err, errLibrary) {
		t.Errorf("got %v", err)
	}
	grow(t, c, "job-1", 0, 2*connections) // on a new connection
}

func TestAConnectionStringsSecretStaysOutOfTheError(t *testing.T) {
	_, err := Open("esdb://admin:topsecret@host:port with blanks", quietLog())
	if err == nil || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("got %v", err)
	}
}

func TestTheSuccessorsSchemeIsTheSameProtocol(t *testing.T) {
	t.Parallel()
	n, err := node.Start(t.Context(), node.Config{DSN: pgtest.NewDSN(t), InsecureListen: "127.0.0.1:0", Log: quietLog()})
	must.NoError(t, err)
	t.Cleanup(func() { _ = n.Close(context.Background()) })
	for _, scheme := range []string{"kurrentdb://", "kurrentdb+discover://"} {
		c, err := Open(strings.Replace(n.ConnectionStrings()[0], "esdb://", scheme, 1), quietLog())
		must.NoError(t, err)
		if _, err := c.Head(t.Context()); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
