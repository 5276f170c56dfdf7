package webhooks

import (
	"context"
	"errors"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/session"
)

// keptFacts bounds the memory of jobs: a few hundred bytes each.
const keptFacts = 20_000

// Facts is what an announcement says beside the event itself. All of it is
// fixed by the time the event happens.
type Facts struct {
	ProjectID string

	// Of a job.
	URL        string
	Title      string
	Type       job.Type
	TypeEcho   string
	Urgent     bool
	SLAMinutes int
	SessionID  string
	ReportID   string // once it is completed

	// Of a session.
	Slots   []session.Slot
	Dropped []int // the slots that the test started without, once it did
}

// add folds one event of the job or the session.
func (f *Facts) add(e domain.Event) {
	switch e := e.(type) {
	case *job.Created:
		*f = Facts{
			ProjectID: e.ProjectID, URL: e.URL, Title: e.Title, Type: e.Type, TypeEcho: e.TypeEcho,
			Urgent: e.Urgent, SLAMinutes: e.SLAMinutes, SessionID: e.SessionID,
		}
	case *job.CompletedWith:
		f.ReportID = e.ReportID
	case *session.Created:
		*f = Facts{ProjectID: e.ProjectID, Slots: e.Slots}
	case *session.Started:
		f.Dropped = e.Dropped
	}
}

// book remembers the facts of the jobs that passed by last, and asks the log
// about others. It belongs to one goroutine.
type book struct {
	log   domain.Log
	known *lru.Cache[string, Facts] // by stream
}

func newBook(log domain.Log) *book {
	known, err := lru.New[string, Facts](keptFacts)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &book{log: log, known: known}
}

// errHeadless says that a stream does not tell what it is about.
var errHeadless = errors.New("the stream does not start as a job or a session does")

var errSeen = errors.New("seen enough")

// facts gives what an announced event is to be told with.
func (b *book) facts(ctx context.Context, r domain.Recorded) (Facts, error) {
	switch e := r.Event.(type) {
	case *loop.Ended:
		return Facts{ProjectID: e.ProjectID}, nil
	case *session.Started, *session.CompletedWith: // two in a session's life: not worth remembering
		return b.load(ctx, r.Stream, r.Revision)
	}
	f, known := b.known.Get(r.Stream)
	_, created := r.Event.(*job.Created)
	_, analysed := r.Event.(*job.AIReportReady)
	var err error
	switch {
	case analysed && f.ReportID == "": // it passed by long ago, or when there was no webhook
		f, err = b.load(ctx, r.Stream, r.Revision)
	case !known && !created:
		f, err = b.load(ctx, r.Stream, 1)
	}
	if err != nil {
		return Facts{}, err
	}
	f.add(r.Event)
	b.known.Add(r.Stream, f)
	return f, nil
}

// load folds the stream's events before a revision.
func (b *book) load(ctx context.Context, stream string, before uint64) (Facts, error) {
	var f Facts
	headed := false
	err := b.log.Load(ctx, stream, 0, func(r domain.Recorded) error {
		if r.Revision >= before {
			return errSeen
		}
		switch r.Event.(type) {
		case *job.Created, *session.Created:
			headed = true
		}
		f.add(r.Event)
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errSeen):
		return Facts{}, fmt.Errorf("load %s: %w", stream, err)
	case !headed:
		return Facts{}, fmt.Errorf("%s: %w", stream, errHeadless)
	}
	return f, nil
}
