package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"humanqa/domain"
)

const (
	// maxBody is the specification's limit (section "Limits").
	maxBody = 50 << 20
	// smallBody is read without asking. What is larger waits for one of a few
	// places, so that many of them at once cannot exhaust the memory. Files have
	// places of their own: whoever uploads keeps nobody from ordering tests.
	smallBody    = 1 << 20
	largeBodies  = 4
	largeUploads = 4
	// placesPerCaller keeps the other places for the others, however much one
	// account, or checker, sends at once.
	placesPerCaller = 1
	// placeWait bounds the wait for such a place.
	placeWait = 5 * time.Second
	// minRate, in bytes a second, is the least that who holds a place has to
	// send on average once placeGrace is over.
	minRate    = 64 << 10
	placeGrace = 10 * time.Second
	// drainLimit and drainTime bound how much of a refused body is read only to
	// be thrown away: a client that is still sending would otherwise see a
	// reset connection instead of the 413.
	drainLimit = 16 << 20
	drainTime  = 10 * time.Second
)

// places lets a few requests with large bodies in at a time, and of one caller
// fewer still.
type places struct {
	grace time.Duration

	mu    sync.Mutex
	free  int
	held  map[string]int // by caller
	freed chan struct{}  // closed, and made anew, when a place is given back
}

func newPlaces(n int) *places {
	return &places{grace: placeGrace, free: n, held: map[string]int{}, freed: make(chan struct{})}
}

// take waits for a place; leave gives it back.
func (p *places) take(ctx context.Context, owner string) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, placeWait)
	defer cancel()
	for {
		freed := p.tryTake(owner)
		if freed == nil {
			return sync.OnceFunc(func() { p.giveBack(owner) }), nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, domain.Unavailable(errors.New("too many large bodies at once"))
		}
	}
}

// tryTake answers nil if it took a place, else what to wait for.
func (p *places) tryTake(owner string) (freed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 || p.held[owner] >= placesPerCaller {
		return p.freed
	}
	p.free--
	p.held[owner]++
	return nil
}

func (p *places) giveBack(owner string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.held[owner]--; p.held[owner] == 0 {
		delete(p.held, owner)
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// paced is the body of a request that holds a place. Before each read it says
// until when more has to be there.
type paced struct {
	io.Reader
	due      func(time.Time) error
	begun    time.Time
	grace    time.Duration
	latest   time.Time // the server's own limit, whatever the rate
	received int64
}

func (p *paced) Read(b []byte) (int, error) {
	earned := time.Duration(p.received) * time.Second / minRate
	due := p.begun.Add(max(p.grace, earned))
	if due.After(p.latest) {
		due = p.latest
	}
	_ = p.due(due) // not every writer can
	n, err := p.Reader.Read(b)
	p.received += int64(n)
	if errors.Is(err, io.EOF) {
		// All is there: the connection's next read waits for the client to hang
		// up, and a due time would take the handler's for up.
		_ = p.due(time.Time{})
	}
	return n, err
}

// readBody reads the whole body, up to the limit. It stands between the
// credential and everything that parses. leave is to be called when the body
// is no longer needed. A stranger's is nobody's to look at: no route that asks
// for no credential takes one.
func readBody(w http.ResponseWriter, r *http.Request, c caller, large *places) (body []byte, leave func(), err error) {
	latest := time.Now().Add(readTime)
	leave = func() {}
	if r.ContentLength > maxBody {
		if r.Header.Get("Expect") == "" { // else the client has not begun to send
			drain(w, r.Body, r.ContentLength-maxBody)
		}
		return nil, leave, errTooLarge
	}
	if c.actor == "" || r.Body == nil || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return nil, leave, nil
	}
	limited := http.MaxBytesReader(w, r.Body, maxBody)
	var buf bytes.Buffer
	_, err = buf.ReadFrom(io.LimitReader(limited, smallBody))
	if err == nil && buf.Len() == smallBody {
		if leave, err = large.take(r.Context(), c.owner()); err != nil {
			return nil, func() {}, err
		}
		if more := r.ContentLength - smallBody; more > 0 {
			buf.Grow(int(more) + bytes.MinRead)
		}
		_, err = buf.ReadFrom(&paced{
			Reader: limited, due: http.NewResponseController(w).SetReadDeadline,
			begun: time.Now(), grace: large.grace, latest: latest,
		})
	}
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		leave()
		drain(w, r.Body, 0)
		return nil, func() {}, errTooLarge
	case err != nil:
		leave()
		wrong := "ended early or could not be read"
		if errors.Is(err, os.ErrDeadlineExceeded) {
			wrong = "arrived too slowly"
		}
		return nil, func() {}, &domain.Error{
			Kind: domain.KindInvalid, Code: domain.CodeInvalidRequest, Message: "the body " + wrong, Cause: err,
			Extras: map[string]any{"details": []domain.Detail{{Path: bodyPath, Message: wrong}}},
		}
	}
	return buf.Bytes(), leave, nil
}

var errTooLarge = &domain.Error{
	Kind: domain.KindTooLarge, Code: domain.CodePayloadTooLarge,
	Message: "the body is larger than 50 MB",
	Hint:    "send less than 50 MB in one request",
}

// drain throws away what a refused client is still sending, when it is not much
// more than was allowed. Errors only mean that the client has stopped.
func drain(w http.ResponseWriter, body io.Reader, excess int64) {
	if excess > drainLimit {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime)) // not every writer can
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxBody+drainLimit))
}
