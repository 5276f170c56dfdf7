// Package wait holds the client's one waiter. It watches jobs until all have ended.
//
// The stream of events wakes it, and the state of each job is read from the service. So a
// lost network, a laptop that slept or a service that restarts costs time and nothing
// else: the stream is opened again, and the states are read anew. Without a stream the
// waiter polls.
package wait

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/backoff"
)

// The pace leaves most of a key's sixty requests a minute to others.
const (
	// turn is the pause between reads, for each job that is read: one that a checker works on,
	// whose items are no events of the stream, or without a stream each open one.
	turn = 5 * time.Second
	// checkup is how often everything is read in spite of a silent stream.
	checkup = time.Minute
)

// ErrTime says that the time to wait is over; the jobs go on.
var ErrTime = errors.New("the time to wait is over")

// Note is one thing that the waiter saw. Exactly one of its parts is set.
type Note struct {
	State *humanqa.HostedStatus // a job's state changed
	Item  *Checked              // an item was checked
	Asked *Asked                // a checker asks, and the clocks stand until the answer
	Lost  error                 // the service cannot be reached; the waiter tries again
	Back  bool                  // it can be reached again
	Moved error                 // the service's log was restored, or is another one
}

// Checked is an item with a verdict.
type Checked struct {
	Type  string `json:"type"` // item
	JobID string `json:"jobId"`
	humanqa.HostedStatusItem
	Number int `json:"number"`
	Of     int `json:"of"`
}

// Asked is a question that waits for an answer.
type Asked struct {
	Type  string `json:"type"` // question
	JobID string `json:"jobId"`
	humanqa.Question
}

// Waiter watches jobs.
type Waiter struct {
	API  *humanqa.Client
	Tell func(Note) // called by one goroutine
	// Until ends the wait; zero: never. It is a time of the wall clock, so that the hours
	// that a machine sleeps count.
	Until time.Time

	jobs []*job
	wake chan struct{}
	live chan bool // the stream stands, or broke
	// moved is why the stream's cursor was refused, until it is told; other says that it ever
	// was.
	moved chan error
	other atomic.Bool
}

type job struct {
	id      string
	etag    string
	state   humanqa.HostedStatus
	checked map[string]humanqa.HostedStatusItemStatus // the verdict told, by item
	asked   string                                    // the question told
}

// For waits until every job has ended. The error is ErrTime, that of ctx, or a refusal that
// no repeat would change.
func (w *Waiter) For(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithCancel(ctx)
	w.jobs = nil
	for _, id := range ids {
		w.jobs = append(w.jobs, &job{id: id, checked: map[string]humanqa.HostedStatusItemStatus{}})
	}
	w.wake, w.live, w.moved = make(chan struct{}, 1), make(chan bool, 1), make(chan error, 1)
	var streaming sync.WaitGroup
	streaming.Go(func() { w.stream(ctx) })
	err := w.watch(ctx)
	cancel()
	streaming.Wait()
	return err
}

// watch reads states until nothing is open.
func (w *Waiter) watch(ctx context.Context) error {
	streaming := false
	lost := false
	failures := 0
	for first := true; ; first = false {
		pause := time.Duration(0)
		if !first && failures == 0 { // behind a failure the back-off was the pause
			pause = w.pause(streaming)
		}
		err := w.read(ctx, pause)
		select {
		case why := <-w.moved:
			w.Tell(Note{Moved: why})
		default:
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			failures = 0
			if lost {
				lost = false
				w.Tell(Note{Back: true})
			}
		case !humanqa.Passing(err):
			return w.lostByRestore(err)
		default:
			failures++
			if !lost && failures > 1 { // one failure in a row is no news
				lost = true
				w.Tell(Note{Lost: err})
			}
			if backoff.Wait(ctx, min(humanqa.Pause(err, failures), w.left())) != nil {
				return ctx.Err()
			}
		}
		if open, _ := w.open(); err == nil && len(open) == 0 {
			return nil
		}
		if w.left() <= 0 {
			return ErrTime
		}
		select {
		case streaming = <-w.live:
		default:
		}
	}
}

// left is the time until the wait ends.
func (w *Waiter) left() time.Duration {
	if w.Until.IsZero() {
		return 24 * time.Hour
	}
	return time.Until(w.Until.Round(0))
}

// open are the jobs that have not ended; a checker works on running of them.
func (w *Waiter) open() (open []*job, running int) {
	for _, j := range w.jobs {
		if j.state.Status == humanqa.HostedStatusStatusInProgress {
			running++
		}
		if !j.state.IsFinal {
			open = append(open, j)
		}
	}
	return open, running
}

// pause is how long nothing is read unless the stream wakes the waiter.
func (w *Waiter) pause(streaming bool) time.Duration {
	open, running := w.open()
	switch {
	case !streaming:
		return turn * time.Duration(len(open))
	case running > 0:
		return turn * time.Duration(running)
	}
	return checkup
}

// read waits for the pause, or for the stream, and reads every open job once.
func (w *Waiter) read(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(min(pause, w.left()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.wake:
	case <-ctx.Done():
		return ctx.Err()
	}
	open, _ := w.open()
	for _, j := range open {
		if err := w.look(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// look reads a job's state and tells the changes in it.
func (w *Waiter) look(ctx context.Context, j *job) error {
	var now humanqa.HostedStatus
	a, err := w.API.Once(ctx, humanqa.Call{
		Method: http.MethodGet, Path: "/v1/hosted/status/" + url.PathEscape(j.id) + "?items=true", ETag: j.etag,
	}, &now)
	if err != nil || a.Status == http.StatusNotModified {
		return err
	}
	before := j.state
	j.etag, j.state = a.ETag, now
	number := 0
	for _, i := range humanqa.Value(now.Items) {
		if i.Status == humanqa.HostedStatusItemStatusPending || i.Status == "" {
			continue
		}
		number++
		if j.checked[i.ID] != i.Status {
			j.checked[i.ID] = i.Status
			w.Tell(Note{Item: &Checked{Type: "item", JobID: j.id, HostedStatusItem: i, Number: number, Of: now.Checklist.TotalItems}})
		}
	}
	if q := now.OpenQuestion; q != nil && j.asked != q.ID {
		j.asked = q.ID
		w.Tell(Note{Asked: &Asked{Type: "question", JobID: j.id, Question: *q}})
	}
	if before.Status != now.Status || before.StatusMessage != now.StatusMessage && now.Status != humanqa.HostedStatusStatusInProgress {
		w.Tell(Note{State: &now})
	}
	return nil
}

// rouse makes the waiter read.
func (w *Waiter) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// tell says whether the stream stands; the last word counts.
func (w *Waiter) tell(live bool) {
	select {
	case <-w.live:
	default:
	}
	w.live <- live
}

// stream holds the stream of events as long as ctx lives. A refusal, such as too many
// streams of one key, leaves the waiter to its polls for a while.
func (w *Waiter) stream(ctx context.Context) {
	watched := map[string]bool{}
	for _, j := range w.jobs {
		watched[j.id] = true
	}
	cursor := ""
	for failures := 0; ctx.Err() == nil; {
		var err error
		stood := false
		if cursor == "" {
			cursor, err = w.begin(ctx)
		}
		if err == nil {
			err = Follow(ctx, w.API, cursor, func() {
				failures, stood = 0, true
				w.tell(true)
				w.rouse() // something may have happened while there was no stream
			}, func(at, jobID string) {
				cursor = at
				if watched[jobID] {
					w.rouse()
				}
			})
		}
		w.tell(false)
		if stood { // the service may be gone, and the next checkup is far
			w.rouse()
		}
		refused, ok := errors.AsType[*humanqa.Error](err)
		if ok && refused.Status >= 400 && refused.Status < 500 && refused.Status != http.StatusTooManyRequests {
			cursor = ""
			if next, isCursor := cursorBehind(refused); isCursor {
				cursor = next
				w.other.Store(true)
				select {
				case w.moved <- refused:
				default:
				}
				w.rouse()
			}
		}
		failures++
		if backoff.Wait(ctx, humanqa.Pause(err, failures)) != nil {
			return
		}
	}
}

// cursorBehind is where a reader of events continues after its own cursor was refused: the
// log was restored, or is another one. Empty: at the beginning.
func cursorBehind(refused *humanqa.Error) (cursor string, is bool) {
	switch refused.Code {
	case "CURSOR_AHEAD", "CURSOR_GONE", "ANOTHER_LOG":
		cursor, _ = refused.Extras["next"].(string)
		return cursor, true
	}
	return "", false
}

// lostByRestore says why a job is not found that was there when the wait began.
func (w *Waiter) lostByRestore(err error) error {
	refused, ok := errors.AsType[*humanqa.Error](err)
	if !w.other.Load() || !ok || refused.Status != http.StatusNotFound {
		return err
	}
	told := *refused
	told.Hint = "the service was restored from a backup of before the submission, so the test and its charge are lost: submit it again"
	return &told
}

// begin is the cursor of the first job's latest event. The feed has no name for its end,
// and nothing before the jobs matters.
func (w *Waiter) begin(ctx context.Context) (string, error) {
	var known humanqa.JobEvents
	_, err := w.API.Once(ctx, humanqa.Call{Method: http.MethodGet, Path: "/v1/jobs/" + url.PathEscape(w.jobs[0].id) + "/events"}, &known)
	if err != nil || len(known.Events) == 0 {
		return "", err
	}
	return humanqa.Value(known.Events[len(known.Events)-1].Cursor), nil
}
