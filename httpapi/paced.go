package httpapi

import (
	"errors"
	"io"
	"net/http"
	"time"

	"humanqa/httpapi/wire"
)

// pacedBodies gives a handler bodies that have to arrive at wire.MinRate or faster,
// whatever their size. This holds whether the handler reads them or leaves them to
// net/http.
func pacedBodies(h http.Handler, grace time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			h.ServeHTTP(w, r)
			return
		}
		now := time.Now()
		body := &paced{
			ReadCloser: r.Body, due: http.NewResponseController(w).SetReadDeadline,
			grace: grace, latest: now.Add(readTime),
		}
		_ = body.due(now.Add(grace)) // not every writer can
		own := *r                    // net/http looks at the body of its own request
		own.Body = body
		h.ServeHTTP(w, &own)
	})
}

// paced is the body of a request. Before each read it sets the time by which more has to
// arrive. Only reads count as the client's time; the server's work before and between
// them does not.
type paced struct {
	io.ReadCloser
	due      func(time.Time) error
	grace    time.Duration
	latest   time.Time // the server's own limit, whatever the rate
	received int64
	waited   time.Duration // in reads
}

func (p *paced) Read(b []byte) (int, error) {
	earned := time.Duration(p.received) * time.Second / wire.MinRate
	begun := time.Now()
	due := begun.Add(max(p.grace, earned) - p.waited)
	if due.After(p.latest) {
		due = p.latest
	}
	_ = p.due(due) // not every writer can
	n, err := p.ReadCloser.Read(b)
	p.received += int64(n)
	p.waited += time.Since(begun)
	if errors.Is(err, io.EOF) {
		// The body is complete. The connection's next read waits for the client to hang
		// up, and a deadline there would cancel the handler's context.
		_ = p.due(time.Time{})
	}
	return n, err
}
