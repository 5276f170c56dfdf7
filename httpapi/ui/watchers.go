package ui

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// A browser has one stream, or a few while the service has not yet seen that one broke off.
	streamsOfSession = 4
	streamsOfPerson  = 20
	// fetches bounds the pages a second that browsers of this process fetch for one account,
	// because of a change in it, or because a stream was opened again.
	fetches = 50
	// byStrangers bounds the delay of a browser by browsers that follow other accounts.
	byStrangers = 2 * time.Second
)

// watcher is an open stream.
type watcher struct {
	person  string
	session uuid.UUID
	follows []string      // accounts, and other keys that are followed in the same way
	ended   chan struct{} // closed when a later stream takes its place
}

// watchers are the open streams of this process.
type watchers struct {
	mu       sync.Mutex
	all      int
	byPerson map[string][]*watcher // the oldest first
	of       map[string]int        // by what they follow
}

func newWatchers() *watchers {
	return &watchers{byPerson: map[string][]*watcher{}, of: map[string]int{}}
}

// enter gives a stream a place. If its session or person has none left, it ends their
// oldest stream, which is the likeliest to have broken off.
func (w *watchers) enter(person string, session uuid.UUID) *watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := &watcher{person: person, session: session, ended: make(chan struct{})}
	var same []*watcher
	for _, other := range w.byPerson[person] {
		if other.session == session {
			same = append(same, other)
		}
	}
	if len(same) >= streamsOfSession {
		w.end(same[0])
	} else if theirs := w.byPerson[person]; len(theirs) >= streamsOfPerson {
		w.end(theirs[0])
	}
	w.byPerson[person] = append(w.byPerson[person], one)
	w.all++
	return one
}

func (w *watchers) end(one *watcher) {
	close(one.ended)
	w.remove(one)
}

// leave gives the place back.
func (w *watchers) leave(one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(one)
}

// remove does nothing for a stream that has ended. The caller holds the lock.
func (w *watchers) remove(one *watcher) {
	theirs := w.byPerson[one.person]
	at := slices.Index(theirs, one)
	if at < 0 {
		return
	}
	if w.byPerson[one.person] = slices.Delete(theirs, at, at+1); len(theirs) == 1 {
		delete(w.byPerson, one.person)
	}
	w.all--
	w.count(one, nil)
}

// follow sets the keys that the stream follows from now on.
func (w *watchers) follow(one *watcher, what []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.byPerson[one.person], one) {
		w.count(one, what)
	}
}

func (w *watchers) count(one *watcher, follows []string) {
	for _, what := range one.follows {
		if w.of[what]--; w.of[what] == 0 {
			delete(w.of, what)
		}
	}
	for _, what := range follows {
		w.of[what]++
	}
	one.follows = follows
}

// heldBack is a random delay before a browser is told of a change. Its bound grows with the
// number of browsers that follow the same key. So a busy account with many viewers costs
// no more than one with few, and no request waits behind all of them. Browsers that follow
// other keys delay a browser by byStrangers at most.
func (w *watchers) heldBack(one *watcher) time.Duration {
	w.mu.Lock()
	own := 0
	for _, what := range one.follows {
		own = max(own, w.of[what])
	}
	all := w.all
	w.mu.Unlock()
	const each = 2 * time.Second / fetches
	return rand.N(max(each*time.Duration(own), min(each*time.Duration(all), byStrangers)) + 1)
}
