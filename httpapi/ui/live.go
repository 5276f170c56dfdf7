package ui

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/wire"
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
	err := s.enter(r)
	if err == nil && r.Person == nil {
		err = domain.Unauthorized("you are not signed in")
	}
	if err != nil {
		s.send(w, r, s.refuse(r, err))
		return
	}
	l := liveStream{Site: s, r: r, out: w, one: s.watchers.enter(r.Person.ID, r.Session.ID), leave: func() {}}
	defer s.watchers.leave(l.one)
	defer func() { l.leave() }()
	l.follow()
	wire.SendsEvents(w.Header())
	// The request has been read; a broken connection fails at its first write.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if l.write("retry: %d\n\n", (comeBack + s.watchers.heldBack(l.one)).Milliseconds()) {
		l.run()
	}
}

// liveStream is an open stream of server-sent events.
type liveStream struct {
	*Site
	r       *Request
	out     http.ResponseWriter
	one     *watcher
	follows []string
	changed <-chan []string
	leave   func() // gives changed up
}

// follow follows the person's keys; anew says that they are others than before.
func (l *liveStream) follow() (anew bool) {
	now := followedBy(l.r.Person)
	if slices.Equal(now, l.follows) {
		return false
	}
	l.leave()
	l.follows = now
	l.watchers.follow(l.one, now)
	l.changed, l.leave = l.Changes.Follow(now...)
	return true
}

func (l *liveStream) write(format string, args ...any) bool {
	c := http.NewResponseController(l.out)
	_ = c.SetWriteDeadline(time.Now().Add(liveWriteTime)) // where it is unsupported, in tests, nothing hangs
	if _, err := fmt.Fprintf(l.out, format, args...); err != nil {
		return false
	}
	return c.Flush() == nil
}

// again finds the person anew. It gives the message to write: opened if the stream now
// follows other keys, empty if the person is no longer signed in, else otherwise.
func (l *liveStream) again(otherwise string) (message string) {
	l.r.Person, l.r.Session = nil, nil
	if err := l.identify(l.r); err != nil || l.r.Person == nil {
		return ""
	}
	if l.follow() {
		return opened
	}
	return otherwise
}

func (l *liveStream) run() {
	// The browser fetches the changes until now, after a random delay: after a restart of
	// the service, all browsers come back at once.
	first := time.After(l.watchers.heldBack(l.one))
	beat := time.NewTimer(nextBeat())
	defer beat.Stop()
	for {
		message := opened
		select {
		case <-l.r.Context().Done():
			return
		case <-l.stopping:
			return
		case <-l.one.ended:
			message = ""
		case streams := <-l.changed:
			var goesOn bool
			if message, goesOn = l.tell(streams); !goesOn {
				return
			}
		case <-first:
		case <-beat.C:
			message = l.again(": .\n\n")
			beat.Reset(nextBeat())
		}
		if message == "" {
			l.write("event: ended\ndata: .\n\n")
			return
		}
		if !l.write("%s", message) {
			return
		}
	}
}

// tell waits a moment for further changes, and gives the message about all of them.
func (l *liveStream) tell(streams []string) (message string, goesOn bool) {
	select {
	case <-time.After(l.watchers.heldBack(l.one)):
	case <-l.r.Context().Done():
		return "", false
	case <-l.stopping:
		return "", false
	case <-l.one.ended:
	}
	select {
	case more := <-l.changed: // meanwhile
		streams = append(streams, more...)
	default:
	}
	slices.Sort(streams)
	streams = slices.Compact(streams)
	message = "data: " + strings.Join(streams, " ") + "\n\n"
	if slices.Contains(streams, domain.PersonStream(l.r.Person.ID)) || slices.Contains(streams, changes.Everything) {
		message = l.again(message)
	}
	return message, true
}

// opened makes a browser fetch its open pages again.
const opened = "event: opened\ndata: .\n\n"

// nextBeat is the time until a stream's next check. It is random, because after a restart
// all browsers open their streams at once. Checks at the same moment would take every
// connection to Postgres.
func nextBeat() time.Duration { return beatEvery/2 + rand.N(beatEvery) }
