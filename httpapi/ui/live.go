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

// live tells a browser which streams of the person's accounts changed, and a
// checker's that the queue did, as server-sent events; the pages that show one of them fetch themselves again. One
// tab holds the stream for all of its browser.
func (s *Site) live(w http.ResponseWriter, hr *http.Request) {
	r := s.accept(w, hr)
	if err := s.identify(r); err != nil || r.Person == nil {
		s.send(w, r, s.refuse(r, domain.Unauthorized("nobody is signed in")))
		return
	}
	if err := s.limit(r); err != nil {
		s.send(w, r, s.refuse(r, err))
		return
	}
	var accounts []string
	for _, m := range r.Person.Memberships() {
		accounts = append(accounts, m.AccountID)
	}
	if id := r.Person.CheckerID(); id != "" {
		accounts = append(accounts, changes.Queue, changes.Checker(id))
	}
	changed, leave := s.Changes.Follow(accounts...)
	defer leave()

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
	watching := s.watching.Add(1)
	defer s.watching.Add(-1)
	if !write("retry: %d\n\n", (comeBack + heldBack(watching)).Milliseconds()) {
		return
	}
	// What happened until now the browser looks for, and not at once with all the others
	// that come back to a service that was started anew.
	opened := time.After(heldBack(watching))
	beat := time.NewTimer(nextBeat())
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-s.stopping:
			return
		case streams := <-changed:
			select {
			case <-time.After(heldBack(s.watching.Load())):
			case <-r.Context().Done():
				return
			case <-s.stopping:
				return
			}
			select {
			case more := <-changed: // meanwhile
				streams = append(streams, more...)
			default:
			}
			slices.Sort(streams)
			streams = slices.Compact(streams)
			if !write("data: %s\n\n", strings.Join(streams, " ")) {
				return
			}
		case <-opened:
			if !write("event: opened\ndata: .\n\n") {
				return
			}
		case <-beat.C:
			r.Person, r.Session = nil, nil
			if err := s.identify(r); err != nil || r.Person == nil {
				write("event: ended\ndata: .\n\n")
				return
			}
			if !write(": .\n\n") {
				return
			}
			beat.Reset(nextBeat())
		}
	}
}

// fetches is how many pages a second are to be fetched at most because something
// changed, or because a stream was opened again, by all browsers of this process
// together.
const fetches = 50

// heldBack is how long one browser is told of a change later: the more watch, the
// longer, and each at another moment, so that a busy account that many look at
// costs no more than one that few do, and nobody's request waits behind them all.
func heldBack(watching int64) time.Duration {
	return rand.N(2*time.Second*time.Duration(watching)/fetches + 1)
}

// nextBeat is when a stream is looked after the next time. Streams that were opened in
// the same moment, by the browsers that come back to a service that was started anew,
// drift apart: together they would take every connection to Postgres at once.
func nextBeat() time.Duration { return beatEvery/2 + rand.N(beatEvery) }
