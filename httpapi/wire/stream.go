package wire

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

// EventStream is the media type of server-sent events.
const EventStream = "text/event-stream"

// WantsEvents says whether the client names server-sent events and does not prefer JSON.
func WantsEvents(accept []string) bool {
	stream := Quality(accept, EventStream)
	plain := Quality(accept, "application/json")
	return stream > 0 && stream >= plain && strings.Contains(strings.ToLower(strings.Join(accept, ",")), EventStream)
}

// SendsEvents sets the headers of an answer of server-sent events. Proxies pass such an answer
// on at once: nginx holds back what does not ask for it.
func SendsEvents(h http.Header) {
	h.Set("Content-Type", EventStream)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
}

// streamWriteTime bounds a write to a client that does not read.
const streamWriteTime = 30 * time.Second

// StreamWriter sends parts of an answer as they come. It takes the connection
// out of the server's time-outs, which are for answers that end.
type StreamWriter struct {
	W    http.ResponseWriter
	C    *http.ResponseController
	sent int

	// Grace, where it is set, demands MinRate of the reader once it is over, on average
	// over all that was sent.
	Grace  time.Duration
	waited time.Duration // for the reader
}

func NewStreamWriter(w http.ResponseWriter) *StreamWriter {
	return &StreamWriter{W: w, C: http.NewResponseController(w)}
}

// Write is Send as an io.Writer has it.
func (s *StreamWriter) Write(part []byte) (int, error) {
	if err := s.Send(part); err != nil {
		return 0, err
	}
	return len(part), nil
}

// Send sends a part at once. An error means that the client is gone, or reads
// nothing.
func (s *StreamWriter) Send(part []byte) error {
	begun := time.Now()
	due := streamWriteTime
	if s.Grace > 0 {
		due = max(s.Grace, time.Duration(s.sent)*time.Second/MinRate) - s.waited
	}
	if due <= 0 {
		return os.ErrDeadlineExceeded
	}
	if err := s.C.SetWriteDeadline(begun.Add(due)); err != nil && !errors.Is(err, errors.ErrUnsupported) { // it is in tests
		return err
	}
	n, err := s.W.Write(part)
	s.sent += n
	if err == nil {
		err = s.C.Flush()
	}
	s.waited += time.Since(begun)
	return err
}

// SendStream puts the headers on the wire, then the stream, and says how many bytes of
// body went out. A panic in the stream cannot become a status any more. It cuts the
// connection off, so that the client does not take the break for the end.
func (a Answer) SendStream(r *Request, w http.ResponseWriter) (sent int) {
	maps.Copy(w.Header(), a.Header)
	w.WriteHeader(a.Status)
	s := NewStreamWriter(w)
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler: // the stream has told why it breaks off
			if _, head := w.(bodiless); !head {
				panic(p)
			}
		default:
			r.Log.WithField("stack", string(debug.Stack())).WithError(fmt.Errorf("panic: %v", p)).Error("panic in a stream")
			panic(http.ErrAbortHandler)
		}
	}()
	// The request has been read. Its deadline would end the connection. A broken
	// connection fails at the first write. The stream has to run even then, because it
	// gives back what the handler took for it.
	_ = s.C.SetReadDeadline(time.Time{})
	a.Stream(r.Context(), s)
	return s.sent
}
