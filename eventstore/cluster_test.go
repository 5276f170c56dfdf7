package eventstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/domain"
	"humanqa/internal/backoff"
	"humanqa/internal/testing/clustertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// story is a service on a cluster: writers that go on whatever happens, and a
// consumer that follows.
type story struct {
	t       *testing.T
	cluster *clustertest.Cluster
	client  *Client
	feed    *Feed

	mu      sync.Mutex
	written map[string]bool // that the log said it took: note by note
	seen    []string        // by the consumer
	taken   []int           // events of each writer
	waited  time.Duration   // the longest that any writer did for one event
	end     context.CancelFunc
	running sync.WaitGroup
}

// pace leaves the machine to others: a story needs writers that are never done,
// not many events.
const pace = 20 * time.Millisecond

func tell(t *testing.T, writers int) *story {
	t.Helper()
	n, _ := setup(t)
	cluster := clustertest.New(t, "unix:"+n.socket)
	client, err := Open(cluster.URL(), quietLog())
	must.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() }) // some call may be held by a frozen member
	ctx, end := context.WithCancel(t.Context())
	s := &story{t: t, cluster: cluster, client: client, feed: NewFeed(client, quietLog()), written: map[string]bool{}, taken: make([]int, writers), end: end}
	s.running.Go(func() { _ = s.feed.Run(ctx) }) // ends with ctx
	s.running.Go(func() { s.follow(ctx) })
	for w := range writers {
		s.running.Go(func() { s.write(ctx, w) })
	}
	t.Cleanup(func() { end(); s.running.Wait() })
	s.goesOn()
	return s
}

func (s *story) write(ctx context.Context, w int) {
	stream := fmt.Sprintf("job-%d", w)
	for i := 0; ctx.Err() == nil; {
		text := fmt.Sprintf("%s@%d", stream, i)
		event, began := note(text), time.Now()
		for ctx.Err() == nil { // as a client does that is told to try again: the same event
			_, err := s.client.Append(ctx, stream, domain.ExpectedRevision(i-1), []domain.NewEvent{event})
			if err == nil {
				s.mu.Lock()
				s.written[text] = true
				s.taken[w]++
				s.waited = max(s.waited, time.Since(began))
				s.mu.Unlock()
				i++
				_ = backoff.Wait(ctx, pace)
				break
			}
			if ctx.Err() == nil && !domain.IsKind(err, domain.KindUnavailable) && !errors.Is(err, domain.ErrUnknownOutcome) {
				s.t.Errorf("append %s: %v", text, err)
				return
			}
		}
	}
}

func (s *story) follow(ctx context.Context) {
	at := Checkpoint{Start: true}
	for {
		page, err := s.feed.Next(ctx, at, 500, nil)
		if err != nil {
			if ctx.Err() == nil {
				s.t.Errorf("follow: %v", err)
			}
			return
		}
		s.mu.Lock()
		for _, r := range page.Events {
			s.seen = append(s.seen, noteOf(r))
		}
		s.mu.Unlock()
		at = Checkpoint{Position: page.Next}
	}
}

// goesOn waits until every writer has written again.
func (s *story) goesOn() {
	s.t.Helper()
	s.mu.Lock()
	before := slices.Clone(s.taken)
	s.mu.Unlock()
	eventually.True(s.t, "nothing is taken any more", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for w, n := range s.taken {
			if n < before[w]+2 { // one may have been under way
				return false
			}
		}
		return true
	})
}

// told ends the writers and holds the log and what the consumer saw against what
// the writers were told.
func (s *story) told() {
	s.t.Helper()
	end := make(map[string]bool)
	eventually.True(s.t, "the consumer does not see all", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(end)
		for _, text := range s.seen {
			if end[text] {
				s.t.Fatalf("the consumer saw %s twice", text)
			}
			end[text] = true
		}
		for text := range s.written {
			if !end[text] {
				return false
			}
		}
		return true
	})
	s.end()
	s.running.Wait()
	stands := map[string]int{}
	must.NoError(s.t, s.client.Walk(s.t.Context(), func(e RawEvent) error {
		r, err := e.Decode()
		stands[noteOf(r)]++
		return err
	}))
	for text := range s.written {
		if stands[text] != 1 {
			s.t.Errorf("%s was taken and stands in the log %d times", text, stands[text])
		}
	}
	for text, n := range stands {
		if n != 1 {
			s.t.Errorf("%s stands in the log %d times", text, n)
		}
	}
}

func TestALeaderThatIsLostLosesNothing(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*clustertest.Cluster, int){
		"killed": (*clustertest.Cluster).Kill, "frozen": (*clustertest.Cluster).Freeze, "parted": (*clustertest.Cluster).Part,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t, 4)
			leader := s.cluster.Leader()
			lose(s.cluster, leader)
			eventually.True(t, "no other leads", func() bool { now := s.cluster.Leader(); return now != leader && now >= 0 })
			s.goesOn()
			// Aimed at are 3 s after a leader was killed, and 8 s after it froze.
			s.mu.Lock()
			t.Logf("%s: nobody waited longer than %s, of which the election took %s", name, s.waited.Round(time.Millisecond), clustertest.Election)
			s.mu.Unlock()
			// It comes back, and follows.
			if name == "killed" {
				s.cluster.Revive(leader)
			}
			s.cluster.Thaw(leader)
			s.goesOn()
			s.told()
		})
	}
}

// A follower shows a beginning of the log, and the rest soon.
func TestAFollowersReadsAreBehindAndMissNothing(t *testing.T) {
	t.Parallel()
	n, direct := setup(t)
	cluster := clustertest.New(t, "unix:"+n.socket)
	follower, err := Open(cluster.URL()+"&nodePreference=follower", quietLog())
	must.NoError(t, err)
	t.Cleanup(func() { _ = follower.Close() }) // nothing to save
	load(t, follower, "job-0")                 // connected
	const events = 20
	begun, first := time.Now(), true // before the first event: a slow machine's may all be old by now
	last := grow(t, direct, "job-0", 0, events)
	eventually.True(t, "the follower does not show all", func() bool {
		got := load(t, follower, "job-0")
		for i, r := range got {
			if want := fmt.Sprintf("job-0@%d", i); noteOf(r) != want {
				t.Fatalf("event %d is %q, want %q", i, noteOf(r), want)
			}
		}
		if first && len(got) == events && time.Since(begun) < clustertest.Stale {
			t.Error("the follower showed everything at once")
		}
		first = false
		return len(got) == events
	})
	if at, err := follower.Head(t.Context()); err != nil || at != last.Position {
		t.Errorf("it ends at %s, %v, want %s", at, err, last.Position)
	}
}

// A look for the node takes longer than the silence after which a connection is checked.
func TestALookForTheNodeThatFailsLeavesNoCallBehind(t *testing.T) {
	t.Parallel()
	var silent [2]string // they take connections and say nothing
	for i := range silent {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		must.NoError(t, err)
		defer func() { _ = listener.Close() }()
		silent[i] = listener.Addr().String()
	}
	config, err := esdb.ParseConnectionString("esdb://" + silent[0] + "," + silent[1] + "?tls=false&gossipTimeout=1")
	must.NoError(t, err)
	limits := patientLimits
	limits.suspect = 10 * time.Millisecond
	c := open(*config, limits, quietLog())
	k := c.pool[0]
	ctx, leave := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() { _, _ = k.acquire(ctx) }) // begins to dial
	eventually.True(t, "a dial fails", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.dialErr != nil
	})
	leave()
	calls.Wait()
	_ = c.Close() // another dial may run, for longer than Close waits
	eventually.True(t, "every call comes back", func() bool {
		select {
		case <-k.drained:
			return true
		default:
			return false
		}
	})
}

func TestAClustersConnectionIsSetForAFailOverUnlessItsAddressSaysOtherwise(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][3]time.Duration{ // gossip, keepalive, discovery
		"esdb://a:1,b:2?tls=false":                        {time.Second, 3 * time.Second, 200 * time.Millisecond},
		"esdb+discover://name:1?tls=false":                {time.Second, 3 * time.Second, 200 * time.Millisecond},
		"esdb://a:1?tls=false":                            {5 * time.Second, 3 * time.Second, 200 * time.Millisecond},
		"esdb://a:1,b:2?gossipTimeout=7&tls=false":        {7 * time.Second, 3 * time.Second, 200 * time.Millisecond},
		"esdb://a:1,b:2?keepalivetimeout=20000":           {time.Second, 20 * time.Second, 200 * time.Millisecond},
		"kurrentdb://a:1,b:2?discoveryInterval=50":        {time.Second, 3 * time.Second, 50 * time.Millisecond},
		"kurrentdb+discover://n:2113?DISCOVERYINTERVAL=9": {time.Second, 3 * time.Second, 9 * time.Millisecond},
	} {
		c, err := Open(url, quietLog())
		must.NoError(t, err)
		is := c.pool[0].config
		got := [3]time.Duration{time.Duration(is.GossipTimeout) * time.Second, is.KeepAliveTimeout, time.Duration(is.DiscoveryInterval) * time.Millisecond}
		if got != want || (c.pool[0].suspect > 0) != isCluster(&is) {
			t.Errorf("%s: got %v, want %v; suspects after %s", url, got, want, c.pool[0].suspect)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
