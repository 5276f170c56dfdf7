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
	// beatEvery is the average interval at which an open stream is checked: the session
	// may have been ended elsewhere.
	beatEvery = 15 * time.Second
	// comeBack is the time after which a browser reopens a stream that broke off.
	comeBack = 2 * time.Second
	// liveWriteTime bounds a write to a browser that does not read.
	liveWriteTime = 30 * time.Second
)

// followedBy gives the keys that a person's stream follows: their accounts, the person, and
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

// live tells a browser, as server-sent events, which streams of the person's accounts have
// changed, and tells a checker's browser of a changed queue. The pages that show one of
// them fetch themselves again. One tab holds the stream for all tabs of its browser. The
// person's rights are looked up again when they change, and from time to time.
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
	// again finds the person anew. It gives the message to write: opened if the stream now
	// follows other keys, empty if the person is no longer signed in, else otherwise.
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
	// The browser fetches the changes until now, after a random delay: after a restart of
	// the service, all browsers come back at once.
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

// opened makes a browser fetch its open pages again.
const opened = "event: opened\ndata: .\n\n"

// nextBeat is the time until a stream's next check. It is random, because after a restart
// all browsers open their streams at once. Checks at the same moment would take every
// connection to Postgres.
func nextBeat() time.Duration { return beatEvery/2 + rand.N(beatEvery) }
