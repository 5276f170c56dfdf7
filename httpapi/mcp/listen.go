package mcp

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"humanqa/httpapi/wire"
	"humanqa/internal/mcptools"
)

const (
	methodHeader = "Mcp-Method"
	// beatEvery is the time between two signs of life of a stream.
	beatEvery = 15 * time.Second
	// listenRetry is the Retry-After, in seconds, for a client that has too many streams.
	listenRetry = 15
)

// listen serves a request for notifications of tasks, as server-sent events. It says
// whether the request is one.
//
// A stream counts once against the key's rate, and so does each look that it takes at a
// task. A key has a bounded number of streams on this node. A client that reads nothing
// for half a minute is cut off.
func (h *Handler) listen(w *shaped, r *http.Request, body []byte, actor string) (served bool) {
	if r.Method != http.MethodPost || r.Header.Get(methodHeader) != mcptools.ListenMethod {
		return false
	}
	message, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return false
	}
	asked, ok := mcptools.ListenOf(message)
	if !ok {
		return false
	}
	if h.listens.TryAcquire(actor, 1) != nil {
		w.Header().Set("Retry-After", strconv.Itoa(listenRetry))
		answer(w, http.StatusTooManyRequests, asked.Refused(mcptools.ErrTooManyListens))
		return true
	}
	defer h.listens.Release(actor, 1)
	w.json = false // there is no other form of it, and what is held has no end
	h.stream(w, r, asked)
	return true
}

// stream sends the notifications until the tasks or the client or the service end.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, asked mcptools.Listen) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := wire.NewStreamWriter(w)
	var mu sync.Mutex // of out and began
	began := false
	event := func(part []byte) error {
		if !began {
			began = true
			_ = out.C.SetReadDeadline(time.Time{}) // the request has been read; a broken connection fails at its first write
			wire.SendsEvents(w.Header())
		}
		return out.Send(part)
	}
	send := func(m jsonrpc.Message) error {
		encoded, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return event(slices.Concat([]byte("data: "), encoded, []byte("\n\n")))
	}
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		beat := time.NewTicker(beatEvery)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				mu.Lock()
				err := error(nil)
				if began {
					err = event([]byte(": alive\n\n"))
				}
				mu.Unlock()
				if err == nil {
					continue
				}
			case <-h.stopped:
			case <-ctx.Done():
			}
			cancel()
			return
		}
	}()
	err := h.tools.Listen(ctx, r.Header, asked, send)
	gone := ctx.Err() != nil
	cancel()
	<-beating // nothing writes behind the end of the request
	switch {
	case err == nil || gone:
	case !began:
		answer(w, http.StatusBadRequest, asked.Refused(err))
	default:
		_ = send(asked.Refused(err)) // a client that is gone needs no answer
	}
}

// answer sends one message instead of a stream.
func answer(w http.ResponseWriter, status int, m jsonrpc.Message) {
	encoded, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded)
}
