package ui

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/projections/changes"
)

const (
	// beatEvery is how often an open stream is looked after, on average: the session
	// may have been ended elsewhere.
	beatEvery = 15 * time.Second
	// comeBack is after how long a browser opens a stream again that broke off.
	comeBack = 2 * time.Second
	// liveWriteTime bounds a write to a browser that does not read.
	liveWriteTime = 30 * time.Second
)

// followedBy is what a person's stream follows: their accounts, what happens to them, and
// a checker's queue and work.
func followedBy(p *Person) []string {
	follows := []string{changes.Person(p.ID)}
	for _, m := range p.Memberships() {
		follows = append(follows, m.AccountID)
	}
	if id := p.CheckerID(); id != "" {
		follows = append(follows, changes.Queue, changes.Checker(id))
	}
	slices.Sort(follows)
	return follows
}

// live tells a browser which streams of the person's accounts changed, and a
// checker's that the queue did, as server-sent events; the pages that show one of them fetch themselves again. One
// tab holds the stream for all of its browser. What the person may do is looked up again
// when it changes, and from time to time.
func (s *Site) live(w http.ResponseWriter, hr *http.Request) {
	r := s.accept(w, hr)
	if err := s.identify(r); err != nil || r.Person == nil {
		s.send(w, r, s.refuse(r, domain.Unauthorized("you are not signed in")))
		return
	}
	if err := s.limit(r); err != nil {
		s.send(w, r, s.refuse(r, err))
		return
	}
	one := s.watchers.enter(r.Person.ID, r.Session.ID)
	defer s.watchers.leave(one)
	var (
		follows []string
		changed <-chan []string
		leave   = func() {}
	)
	defer func() { leave() }()
	follow := func() (anew bool) {
		now := followedBy(r.Person)
		if slices.Equal(now, follows) {
			return false
		}
		leave()
		follows = now
		s.watchers.follow(one, now)
		changed, leave = s.Changes.Follow(now...)
		return true
	}
	follow()

	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // the request has been read; a broken connection fails at its first write
	write := func(format string, args ...any) bool {
		_ = c.SetWriteDeadline(time.Now().Add(liveWriteTime)) // where it is unsupported, in tests, nothing hangs
		if _, err := fmt.Fprintf(w, format, args...); err != nil {
			return false
		}
		return c.Flush() == nil
	}
	if !write("retry: %d\n\n", (comeBack + s.watchers.heldBack(one)).Milliseconds()) {
		return
	}
	// again says otherwise what is to be written, where the person may do something else
	// by now; nothing: they may do nothing any more.
	again := func(otherwise string) (message string) {
		r.Person, r.Session = nil, nil
		if err := s.identify(r); err != nil || r.Person == nil {
			return ""
		}
		if follow() {
			return opened
		}
		return otherwise
	}
	// What happened until now the browser looks for, and not at once with all the others
	// that come back to a service that was started anew.
	first := time.After(s.watchers.heldBack(one))
	beat := time.NewTimer(nextBeat())
	defer beat.Stop()
	for {
		message := opened
		select {
		case <-r.Context().Done():
			return
		case <-s.stopping:
			return
		case <-one.ended:
			message = ""
		case streams := <-changed:
			select {
			case <-time.After(s.watchers.heldBack(one)):
			case <-r.Context().Done():
				return
			case <-s.stopping:
				return
			case <-one.ended:
			}
			select {
			case more := <-changed: // meanwhile
				streams = append(streams, more...)
			default:
			}
			slices.Sort(streams)
			streams = slices.Compact(streams)
			message = "data: " + strings.Join(streams, " ") + "\n\n"
			if slices.Contains(streams, domain.PersonStream(r.Person.ID)) || slices.Contains(streams, changes.Everything) {
				message = again(message)
			}
		case <-first:
		case <-beat.C:
			message = again(": .\n\n")
			beat.Reset(nextBeat())
		}
		if message == "" {
			write("event: ended\ndata: .\n\n")
			return
		}
		if !write("%s", message) {
			return
		}
	}
}

// opened has a browser look for whatever it may see.
const opened = "event: opened\ndata: .\n\n"

// nextBeat is when a stream is looked after the next time. Streams that were opened in
// the same moment, by the browsers that come back to a service that was started anew,
// drift apart: together they would take every connection to Postgres at once.
func nextBeat() time.Duration { return beatEvery/2 + rand.N(beatEvery) }
