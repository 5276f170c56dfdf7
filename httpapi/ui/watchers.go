package ui

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

const (
	// A browser has one stream, or a few while one has broken off unseen.
	streamsOfSession = 4
	streamsOfPerson  = 20
	// fetches is how many pages a second are to be fetched at most because something
	// changed in an account, or because a stream was opened again, by all browsers of
	// this process that follow the account.
	fetches = 50
	// byStrangers is how long browsers that follow other accounts may delay one.
	byStrangers = 2 * time.Second
)

// watcher is an open stream.
type watcher struct {
	person  string
	session uuid.UUID
	follows []string      // accounts, and what else is followed like one
	ended   chan struct{} // closed when a later stream has its place
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

// enter gives a stream a place, the oldest one's of its session or person where they
// have none left: that one is the likeliest to have broken off.
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

// follow says what the stream follows from now on.
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

// heldBack is how long one browser is told of a change later: the more follow the
// same, the longer, and each at another moment, so that a busy account that many look
// at costs no more than one that few do, and nobody's request waits behind them all.
// How many follow something else matters little: a stranger delays nobody for long.
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
