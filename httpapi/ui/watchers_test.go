package ui

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
)

// watch opens a stream of a person of their own.
func (w *watchers) watch(person string, follows ...string) *watcher {
	one := w.enter(person, uuid.New())
	w.follow(one, follows)
	return one
}

func (one *watcher) hasEnded() bool {
	select {
	case <-one.ended:
		return true
	default:
		return false
	}
}

// Many who watch one account are told later and not all at once; one alone is told at
// once, and however many strangers watch, within two seconds.
func TestMoreWatchersAreToldLaterAndStrangersDelayNobodyForLong(t *testing.T) {
	t.Parallel()
	w := newWatchers()
	told := func(one *watcher, most time.Duration) {
		t.Helper()
		var sum, least, longest time.Duration
		least = time.Hour
		const tries = 2000
		for range tries {
			d := w.heldBack(one)
			sum, least, longest = sum+d, min(least, d), max(longest, d)
		}
		if mean := sum / tries; mean < most*4/10 || mean > most*6/10 || longest > most+1 || least > most/10 {
			t.Errorf("they are held back %s to %s, on average %s", least, longest, mean)
		}
	}
	alone := w.watch("ann", "globex")
	told(alone, 40*time.Millisecond)
	var one *watcher
	for n := range 200 {
		one = w.watch(fmt.Sprint(n), "acme", fmt.Sprint("own ", n))
	}
	told(one, 8*time.Second) // once every 4 s on average: 200 of them are 50 a second
	told(alone, 2*time.Second)
}

func TestStreamsOfASessionAndAPersonAreBounded(t *testing.T) {
	t.Parallel()
	w := newWatchers()
	session := uuid.New()
	var all []*watcher
	open := func(person string, session uuid.UUID) {
		one := w.enter(person, session)
		w.follow(one, []string{"acme", person})
		all = append(all, one)
	}
	for range streamsOfSession + 1 {
		open("ann", session)
	}
	for n, one := range all {
		if one.hasEnded() != (n == 0) {
			t.Errorf("stream %d of the session has ended: %v", n, one.hasEnded())
		}
	}
	for range streamsOfPerson - streamsOfSession + 1 {
		open("ann", uuid.New())
	}
	open("bob", uuid.New())
	for n, one := range all {
		if one.hasEnded() != (n < 2) {
			t.Errorf("stream %d of the person has ended: %v", n, one.hasEnded())
		}
	}
	if w.all != streamsOfPerson+1 || w.of["acme"] != w.all || w.of["ann"] != streamsOfPerson {
		t.Errorf("%d streams, by what they follow %v", w.all, w.of)
	}
	for _, one := range all {
		w.follow(one, []string{"globex"}) // those that have ended follow nothing any more
		w.leave(one)
		w.leave(one)
	}
	if w.all != 0 || len(w.byPerson) != 0 || len(w.of) != 0 {
		t.Errorf("left are %d streams, %v, %v", w.all, w.byPerson, w.of)
	}
}
