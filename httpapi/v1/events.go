package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/wire"
	"humanqa/projections/events"
)

const (
	// streamBeat is the time between two signs of life, which tell a client and its
	// proxies that a stream is open.
	streamBeat = 15 * time.Second
	// StreamsPerKey bounds the streams of one API key on this node.
	StreamsPerKey = 5
	// streamRetry is the Retry-After, in seconds, for a client with too many streams.
	streamRetry = 15
	// StreamPage is how many events a stream reads at once.
	StreamPage = 20
	// streamReadTime bounds one of a stream's queries.
	streamReadTime = 10 * time.Second
)

// announcedTypes are the log's names of the events that the feed holds, by the
// names under which they are announced.
var announcedTypes = func() map[string]string {
	types := map[string]string{}
	for _, k := range announce.Kinds() {
		types[k.Name] = k.Type
	}
	return types
}()

type jobFeed struct {
	JobID      string            `json:"jobId"`
	Events     []json.RawMessage `json:"events"`
	PassedOver int               `json:"passedOver,omitempty"`
}

// jobEvents is GET /v1/jobs/:id/events.
func (a *Handlers) jobEvents(r *wire.Request) (wire.Answer, error) {
	j, err := a.ownJob(r)
	if err != nil {
		return wire.Answer{}, err
	}
	if err := a.Fresh.RequireFeed(r.Context()); err != nil {
		return wire.Answer{}, err
	}
	found, err := a.Reads.Events.OfJob(r.Context(), r.Caller.AccountID, j.ID)
	if err != nil {
		return wire.Answer{}, err
	}
	list, passedOver, err := a.feedItems(found)
	return wire.ReplyUnless(err, http.StatusOK, jobFeed{JobID: j.ID, Events: list, PassedOver: passedOver})
}

type eventPage struct {
	Events  []json.RawMessage `json:"events"`
	Next    *string           `json:"next"` // to be asked with as after; null before the first event
	HasMore bool              `json:"hasMore"`
	// PassedOver are events of kinds that this process does not know, while a newer version
	// of the service runs beside it. Next lies behind them.
	PassedOver int `json:"passedOver,omitempty"`
}

// accountEvents is GET /v1/events: a page of the account's events, or all of
// them as they come.
func (a *Handlers) accountEvents(r *wire.Request) (wire.Answer, error) {
	if wire.WantsEvents(r.Header.Values("Accept")) {
		return a.streamEvents(r)
	}
	var p wire.Problems
	f, reader := eventFilter(r, &p)
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	page, err := a.eventPage(r, f, reader)
	if err != nil {
		return wire.Answer{}, a.noteRefused(reader, f, err)
	}
	answer, err := wire.Reply(http.StatusOK, page)
	return a.onLog(answer), err
}

// eventPage reads the page behind the filter's cursor, as the reader sent it.
func (a *Handlers) eventPage(r *wire.Request, f events.Filter, reader readers.ID) (page eventPage, err error) {
	ctx := r.Context()
	if err := a.Readers.Admit(ctx, reader); err != nil {
		return page, err
	}
	if f.After, err = a.cursors.Accept(ctx, f.After); err != nil {
		return page, err
	}
	limit := f.Limit
	f.Limit++ // tells whether there are more
	behind := a.Fresh.RequireFeed(ctx)
	end := ""
	if reader.Name != "" {
		if end, err = a.Reads.Events.Newest(ctx); err != nil { // before the page, so that the page reaches at least as far
			return page, err
		}
	}
	found, held, err := a.Reads.Events.Page(ctx, r.Caller.AccountID, f)
	if err != nil || held != nil && len(found) == 0 {
		return page, errors.Join(err, held)
	}
	page.HasMore = len(found) > limit || held != nil
	if behind != nil && !page.HasMore { // there may be more
		return page, behind
	}
	found = found[:min(limit, len(found))]
	last, confirmed := f.After, f.After
	if len(found) > 0 {
		last = found[len(found)-1].Cursor
	} else {
		if err := a.cursors.Reached(ctx, f.After); err != nil {
			return page, err
		}
		confirmed = events.LaterCursor(f.After, end) // nothing up to there is for this reader
	}
	a.Readers.Note(readers.Note{ID: reader, Cursor: confirmed, Types: f.Types})
	page.Next = wire.OrNull(a.cursors.Tell(last))
	page.Events, page.PassedOver, err = a.feedItems(found)
	return page, err
}

// onLog says in the answer's header which log it is of.
func (a *Handlers) onLog(answer wire.Answer) wire.Answer {
	if log := a.cursors.Log(); log != "" {
		if answer.Header == nil {
			answer.Header = http.Header{}
		}
		answer.Header.Set(readers.LogHeader, log)
	}
	return answer
}

// eventFilter reads the query. A project-bound key only sees its project. A reader may have
// no name.
func eventFilter(r *wire.Request, p *wire.Problems) (f events.Filter, reader readers.ID) {
	q := r.Query(p)
	reader = readers.ID{AccountID: r.Caller.AccountID, ProjectID: r.Caller.ProjectID, Name: q.Text("reader")}
	if reader.Name != "" && !readers.IsName(reader.Name) {
		p.Add("reader", readers.NameForm)
	}
	f = events.Filter{
		After: q.Text("after"), ProjectID: r.Caller.ProjectID, Limit: q.Integer("limit", 20, 1, 100),
	}
	if !events.IsCursor(f.After) {
		p.Add("after", "must be a cursor of this feed")
	}
	names := q.Text("types")
	if names == "" {
		return f, reader
	}
	for _, name := range strings.Split(names, ",") {
		logged, known := announcedTypes[strings.TrimSpace(name)]
		if !known {
			p.Add("types", "must name events out of %s", strings.Join(slices.Sorted(maps.Keys(announcedTypes)), ", "))
			break
		}
		f.Types = append(f.Types, logged)
	}
	return f, reader
}

// feedItems renders events as webhooks announce them, with the event's id and its place
// in the feed in front. It passes over events that this binary does not announce.
func (a *Handlers) feedItems(found []events.AccountEvent) (items []json.RawMessage, passedOver int, err error) {
	items = make([]json.RawMessage, 0, len(found))
	for _, e := range found {
		body, announced, err := announce.Render(a.BaseURL, e.Recorded, e.About)
		if err != nil {
			return nil, 0, fmt.Errorf("render event %s: %w", e.Recorded.ID, err)
		}
		if !announced {
			passedOver++
			continue
		}
		head := fmt.Sprintf(`{"id":%q,"cursor":%q,`, e.Recorded.ID, a.cursors.Tell(e.Cursor))
		items = append(items, append([]byte(head), body[1:]...))
	}
	return items, passedOver, nil
}

// openStream asks for one of the key's streams; leave gives it back.
func (a *Handlers) openStream(key string) (leave func(), err error) {
	if a.streams.TryAcquire(key, 1) != nil {
		return nil, wire.RetryAfter(&domain.Error{
			Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
			Message: fmt.Sprintf("the key has %d streams open", StreamsPerKey),
			Hint:    "close one of them, or read the feed page by page",
		}, streamRetry)
	}
	return sync.OnceFunc(func() { a.streams.Release(key, 1) }), nil
}

// streamEvents answers with the feed as server-sent events, from the cursor of
// Last-Event-ID, which a client sends when it connects again, or of after.
func (a *Handlers) streamEvents(r *wire.Request) (wire.Answer, error) {
	leave, err := a.openStream(r.Caller.Actor)
	if err != nil {
		return wire.Answer{}, err
	}
	var p wire.Problems
	f, reader := eventFilter(r, &p)
	f.Limit = StreamPage
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		f.After = last
		if !events.IsCursor(last) {
			p.Add("Last-Event-ID", "must be a cursor of this feed")
		}
	}
	if err = p.Err(); err == nil {
		f.After, err = a.beginStream(r.Context(), f, reader)
	}
	if err != nil {
		leave()
		return wire.Answer{}, err
	}
	header := http.Header{}
	wire.SendsEvents(header)
	return a.onLog(wire.Answer{
		Status: http.StatusOK,
		Header: header,
		Stream: func(ctx context.Context, w *wire.StreamWriter) {
			defer leave()
			if err := a.follow(ctx, r, f, reader, w); err != nil && ctx.Err() == nil {
				r.Log.WithError(err).Info("the stream of events ends early")
			}
		},
	}), nil
}

// beginStream judges the cursor of a stream.
func (a *Handlers) beginStream(ctx context.Context, f events.Filter, reader readers.ID) (after string, err error) {
	if err := a.Readers.Admit(ctx, reader); err != nil {
		return "", err
	}
	if after, err = a.cursors.Accept(ctx, f.After); err == nil {
		err = a.cursors.Reached(ctx, after)
	}
	if err != nil {
		return "", a.noteRefused(reader, f, err)
	}
	return after, nil
}

// follow sends the account's events until the client is gone, the service stops or the
// key is refused. After any end the client can go on behind the last event it got.
func (a *Handlers) follow(ctx context.Context, r *wire.Request, f events.Filter, reader readers.ID, w *wire.StreamWriter) error {
	token, err := admit.Bearer(r.Header)
	if err != nil {
		return err
	}
	news, leave := a.feedWatch.Listen(r.Caller.AccountID, domain.HashToken(token))
	defer leave()
	beat := time.NewTicker(a.Beat)
	defer beat.Stop()
	if err := w.Send([]byte(": the feed of the account's events\n\n")); err != nil {
		return err
	}
	now := make(chan struct{}) // always ready
	close(now)
	for more := true; ; {
		next := now
		if !more {
			next = nil
		}
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-a.Stopping:
			return nil
		case <-news.Refused:
			return a.Gate.StillMay(ctx, r)
		case <-news.Wake:
			more = true
		case <-next:
			if more, err = a.SendEvents(ctx, r.Caller.AccountID, &f, w); err == nil {
				a.Readers.Note(readers.Note{ID: reader, Cursor: f.After, Types: f.Types})
			}
		case <-beat.C:
			more = true // in case a wake was missed
			err = w.Send([]byte(": alive\n\n"))
		}
		if err != nil {
			return err
		}
	}
}

// SendEvents sends the next page, moves the filter behind what it has looked at, and says
// whether there may be more. Events that were passed over are not looked at again, so a
// stream of rare events costs no more than any other.
func (a *Handlers) SendEvents(ctx context.Context, accountID string, f *events.Filter, w *wire.StreamWriter) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, streamReadTime)
	defer cancel()
	end, err := a.Reads.Events.Newest(ctx) // before the page, so that the page reaches at least as far
	if err != nil {
		return false, err
	}
	found, held, err := a.Reads.Events.Page(ctx, accountID, *f)
	switch {
	case err != nil || held != nil && len(found) == 0:
		return false, errors.Join(err, held) // the client connects again, perhaps to a newer process
	case len(found) == 0:
		f.After = events.LaterCursor(f.After, end)
		return false, nil
	}
	var page bytes.Buffer
	for i, e := range found {
		item, passedOver, err := a.feedItems(found[i : i+1])
		switch {
		case err != nil:
			return false, err
		case passedOver > 0:
			page.WriteString(": an event of a kind that this process does not know is passed over\n\n")
		default:
			kind, _ := announce.Of(e.Recorded.Event)
			fmt.Fprintf(&page, "id: %s\nevent: %s\ndata: %s\n\n", a.cursors.Tell(e.Cursor), kind.Name, item[0])
		}
	}
	f.After = found[len(found)-1].Cursor
	if more = len(found) == f.Limit || held != nil; !more {
		f.After = events.LaterCursor(f.After, end)
	}
	return more, w.Send(page.Bytes())
}
