package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"humanqa/domain"
)

const (
	// streamWriteTime bounds a write to a client that does not read.
	streamWriteTime = 30 * time.Second
	// streamsPerKey bounds the streams of one API key on this node.
	streamsPerKey = 5
	// streamRetry is how long a client that had too many waits, in seconds.
	streamRetry = 15
)

// streamWriter sends parts of an answer as they come. It takes the connection
// out of the server's time-outs, which are for answers that end.
type streamWriter struct {
	w    http.ResponseWriter
	c    *http.ResponseController
	sent int

	// grace, where it is set, gives the reader minRate: on average over all that was
	// sent, once it is over.
	grace  time.Duration
	waited time.Duration // for the reader
}

// write sends a part at once. An error means that the client is gone, or reads
// nothing.
func (s *streamWriter) write(part []byte) error {
	begun := time.Now()
	due := streamWriteTime
	if s.grace > 0 {
		due = max(s.grace, time.Duration(s.sent)*time.Second/minRate) - s.waited
	}
	if due <= 0 {
		return os.ErrDeadlineExceeded
	}
	if err := supported(s.c.SetWriteDeadline(begun.Add(due))); err != nil {
		return err
	}
	n, err := s.w.Write(part)
	s.sent += n
	if err == nil {
		err = s.c.Flush()
	}
	s.waited += time.Since(begun)
	return err
}

// supported passes over what a ResponseWriter cannot do, as in tests.
func supported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// sendStream puts the headers on the wire, then the stream, and says how many
// bytes of body went out. What panics there cannot become a status any more: the
// connection is cut off, so that the client does not take it for the end.
func (a answer) sendStream(r *request, w http.ResponseWriter) (sent int) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	s := &streamWriter{w: w, c: http.NewResponseController(w)}
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler: // the stream has told why it breaks off
			panic(p)
		default:
			r.log.WithField("stack", string(debug.Stack())).WithError(fmt.Errorf("panic: %v", p)).Error("panic in a stream")
			panic(http.ErrAbortHandler)
		}
	}()
	// The request has been read. Its deadline would end the connection. One that
	// is broken already fails at its first write; the stream must have its turn,
	// because it gives back what the handler took for it.
	_ = s.c.SetReadDeadline(time.Time{})
	a.stream(r.Context(), s)
	return s.sent
}

// streamPlaces counts the open streams of each key.
type streamPlaces struct {
	mu   sync.Mutex
	open map[string]int
}

// take asks for a place; leave gives it back.
func (p *streamPlaces) take(key string) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[key] >= streamsPerKey {
		return nil, retryAfter(&domain.Error{
			Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
			Message: fmt.Sprintf("the key has %d streams open", streamsPerKey),
			Hint:    "close one of them, or read the feed page by page",
		}, streamRetry)
	}
	p.open[key]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open[key]--; p.open[key] == 0 {
			delete(p.open, key)
		}
	}), nil
}
