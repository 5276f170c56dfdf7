package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/projections/events"
)

const (
	// streamBeat shows a client, and whatever stands in between, that a stream
	// lives.
	streamBeat = 15 * time.Second
	// streamPage is how many events a stream reads at once.
	streamPage = 20
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
	JobID  string            `json:"jobId"`
	Events []json.RawMessage `json:"events"`
}

// jobEvents is GET /v1/jobs/:id/events.
func (a *API) jobEvents(r *request) (answer, error) {
	j, err := a.ownJob(r)
	if err != nil {
		return answer{}, err
	}
	a.feedCatchesUp(r)
	found, err := a.reads.Events.OfJob(r.Context(), r.caller.accountID, j.ID)
	if err != nil {
		return answer{}, err
	}
	list, err := a.feedItems(found)
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, jobFeed{JobID: j.ID, Events: list})
}

type eventPage struct {
	Events  []json.RawMessage `json:"events"`
	Next    *string           `json:"next"` // to be asked with as after; null before the first event
	HasMore bool              `json:"hasMore"`
}

// accountEvents is GET /v1/events: a page of the account's events, or all of
// them as they come.
func (a *API) accountEvents(r *request) (answer, error) {
	if wantsStream(r.Header.Values("Accept")) {
		return a.streamEvents(r)
	}
	var p problems
	f := r.eventFilter(&p)
	if err := p.err(); err != nil {
		return answer{}, err
	}
	limit := f.Limit
	f.Limit++ // tells whether there are more
	a.feedCatchesUp(r)
	found, err := a.reads.Events.After(r.Context(), r.caller.accountID, f)
	if err != nil {
		return answer{}, err
	}
	page := eventPage{Next: orNull(f.After), HasMore: len(found) > limit}
	found = found[:min(limit, len(found))]
	if len(found) > 0 {
		page.Next = &found[len(found)-1].Cursor
	}
	if page.Events, err = a.feedItems(found); err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, page)
}

// eventFilter reads the query. A project-bound key only sees its project.
func (r *request) eventFilter(p *problems) events.Filter {
	q := r.query(p)
	f := events.Filter{
		After: q.text("after"), ProjectID: r.caller.projectID, Limit: q.integer("limit", 20, 1, 100),
	}
	if !events.IsCursor(f.After) {
		p.add("after", "must be a cursor of this feed")
	}
	names := q.text("types")
	if names == "" {
		return f
	}
	for _, name := range strings.Split(names, ",") {
		logged, known := announcedTypes[strings.TrimSpace(name)]
		if !known {
			p.add("types", "must name events out of %s", strings.Join(slices.Sorted(maps.Keys(announcedTypes)), ", "))
			break
		}
		f.Types = append(f.Types, logged)
	}
	return f
}

// feedItems renders events as webhooks announce them, with the event's id and
// its place in the feed in front.
func (a *API) feedItems(found []events.AccountEvent) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, len(found))
	for i, e := range found {
		body, announced, err := announce.Render(a.baseURL, e.Recorded, e.About)
		switch {
		case err != nil:
			return nil, fmt.Errorf("render event %s: %w", e.Recorded.ID, err)
		case !announced:
			return nil, fmt.Errorf("event %s, a %s, is none that is announced", e.Recorded.ID, e.Recorded.Type)
		}
		head := fmt.Sprintf(`{"id":%q,"cursor":%q,`, e.Recorded.ID, e.Cursor)
		items[i] = append([]byte(head), body[1:]...)
	}
	return items, nil
}

// feedCatchesUp waits until the feed shows what was answered before. Writes
// don't wait for it: it gathers.
func (a *API) feedCatchesUp(r *request) { a.FeedCatchesUp(r.Context(), r.log) }

// FeedCatchesUp waits until the feed of events shows what the other read models
// do, for a moment at most.
func (a *API) FeedCatchesUp(ctx context.Context, log logrus.FieldLogger) {
	short, cancel := context.WithTimeout(ctx, visibleWithin)
	defer cancel()
	if err := a.feedShown(short); err != nil && ctx.Err() == nil {
		log.WithError(err).Warn("the feed was read before it caught up")
	}
}

const eventStream = "text/event-stream"

// wantsStream says whether the client names the stream and likes JSON no more.
func wantsStream(accept []string) bool {
	stream := reportFormat{types: []string{eventStream}}.quality(accept)
	plain := reportFormat{types: []string{"application/json"}}.quality(accept)
	return stream > 0 && stream >= plain && strings.Contains(strings.ToLower(strings.Join(accept, ",")), eventStream)
}

// streamEvents answers with the feed as server-sent events, from the cursor of
// Last-Event-ID, which a client sends when it connects again, or of after.
func (a *API) streamEvents(r *request) (answer, error) {
	leave, err := a.streams.take(r.caller.actor)
	if err != nil {
		return answer{}, err
	}
	var p problems
	f := r.eventFilter(&p)
	f.Limit = streamPage
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		f.After = last
		if !events.IsCursor(last) {
			p.add("Last-Event-ID", "must be a cursor of this feed")
		}
	}
	if err := p.err(); err != nil {
		leave()
		return answer{}, err
	}
	return answer{
		status: http.StatusOK,
		header: http.Header{
			"Content-Type": {eventStream}, "X-Accel-Buffering": {"no"}, // proxies pass it on at once
		},
		stream: func(ctx context.Context, w *streamWriter) {
			defer leave()
			if err := a.follow(ctx, r, f, w); err != nil && ctx.Err() == nil {
				r.log.WithError(err).Info("the stream of events ends early")
			}
		},
	}, nil
}

// follow sends the account's events until the client is gone, the service stops
// or the key is refused. Whatever ends it, the client goes on behind the last
// event it got.
func (a *API) follow(ctx context.Context, r *request, f events.Filter, w *streamWriter) error {
	token, err := bearer(r.Header)
	if err != nil {
		return err
	}
	news, leave := a.feedWatch.listen(r.caller.accountID, domain.HashToken(token))
	defer leave()
	beat := time.NewTicker(a.beat)
	defer beat.Stop()
	if err := w.write([]byte(": the feed of the account's events\n\n")); err != nil {
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
		case <-a.stopping.begun():
			return nil
		case <-news.refused:
			return a.stillMay(ctx, r)
		case <-news.wake:
			more = true
		case <-next:
			more, err = a.sendEvents(ctx, r.caller.accountID, &f, w)
		case <-beat.C:
			more = true // in case nobody woke us
			err = w.write([]byte(": alive\n\n"))
		}
		if err != nil {
			return err
		}
	}
}

// stillMay looks at the key again: it may have been revoked or have expired
// since, or its account may have been suspended.
func (a *API) stillMay(ctx context.Context, r *request) error {
	ctx, cancel := context.WithTimeout(ctx, streamReadTime)
	defer cancel()
	token, err := bearer(r.Header)
	if err != nil {
		return err
	}
	key, found, err := a.reads.Access.Key(ctx, domain.HashToken(token))
	if err != nil {
		return err
	}
	return mayCall(key, found, a.now())
}

// sendEvents sends the next page, moves the filter behind what it has looked at,
// and says whether there may be more. What was passed over is not looked at
// again: a stream of rare events costs no more than any other.
func (a *API) sendEvents(ctx context.Context, accountID string, f *events.Filter, w *streamWriter) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, streamReadTime)
	defer cancel()
	end, err := a.reads.Events.Newest(ctx) // before the page, which so reaches as far at least
	if err != nil {
		return false, err
	}
	found, err := a.reads.Events.After(ctx, accountID, *f)
	if err != nil {
		return false, err
	}
	if len(found) == 0 {
		f.After = events.LaterCursor(f.After, end)
		return false, nil
	}
	items, err := a.feedItems(found)
	if err != nil {
		return false, err
	}
	var page bytes.Buffer
	for i, item := range items {
		kind, _ := announce.Of(found[i].Recorded.Event)
		fmt.Fprintf(&page, "id: %s\nevent: %s\ndata: %s\n\n", found[i].Cursor, kind.Name, item)
	}
	f.After = found[len(found)-1].Cursor
	if more = len(found) == f.Limit; !more {
		f.After = events.LaterCursor(f.After, end)
	}
	return more, w.write(page.Bytes())
}
