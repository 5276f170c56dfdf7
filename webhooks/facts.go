package webhooks

import (
	"context"
	"errors"
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	"humanqa/domain"
	"humanqa/domain/job"
)

// keptFacts bounds the memory of jobs: a few hundred bytes each.
const keptFacts = 20_000

// facts is what deliveries say about a job beside the event itself. All of it
// is fixed by job.created.
type facts struct {
	ProjectID string
	URL       string
	Title     string
	Type      job.Type
	TypeEcho  string
	Urgent    bool
	SessionID string
}

func factsOf(e *job.Created) facts {
	return facts{
		ProjectID: e.ProjectID, URL: e.URL, Title: e.Title, Type: e.Type, TypeEcho: e.TypeEcho,
		Urgent: e.Urgent, SessionID: e.SessionID,
	}
}

// book remembers the facts of the jobs that passed by last, and asks the log
// about others. It belongs to one goroutine.
type book struct {
	log   domain.Log
	known *lru.Cache[string, facts]
}

func newBook(log domain.Log) *book {
	known, err := lru.New[string, facts](keptFacts)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &book{log: log, known: known}
}

// errNoJob says that a job's stream does not start with job.created.
var errNoJob = errors.New("the stream does not start with job.created")

var errSeen = errors.New("seen enough")

// facts gives what is known of the job whose event that is.
func (b *book) facts(ctx context.Context, r domain.Recorded) (facts, error) {
	if e, ok := r.Event.(*job.Created); ok {
		f := factsOf(e)
		b.known.Add(r.Stream, f)
		return f, nil
	}
	if f, ok := b.known.Get(r.Stream); ok {
		return f, nil
	}
	var first domain.Event
	err := b.log.Load(ctx, r.Stream, 0, func(r domain.Recorded) error {
		first = r.Event
		return errSeen
	})
	if err != nil && !errors.Is(err, errSeen) {
		return facts{}, fmt.Errorf("load %s: %w", r.Stream, err)
	}
	e, ok := first.(*job.Created)
	if !ok {
		return facts{}, fmt.Errorf("%s: %w", r.Stream, errNoJob)
	}
	f := factsOf(e)
	b.known.Add(r.Stream, f)
	return f, nil
}
