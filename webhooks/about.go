package webhooks

import (
	"context"
	"errors"
	"fmt"
	"math"

	lru "github.com/hashicorp/golang-lru/v2"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
)

// keptEnrichments bounds the memory of jobs: a few hundred bytes each.
const keptEnrichments = 20_000

// About tells what announced events are about. It remembers what the jobs that passed by
// last have told, so job.created belongs to its events, and asks the log about others. It
// belongs to one goroutine.
type About struct {
	log   domain.Log
	known *lru.Cache[string, announce.Enrichment] // by stream
}

// NewAbout makes one that asks the log about streams that it has not seen begin.
func NewAbout(log domain.Log) *About {
	known, err := lru.New[string, announce.Enrichment](keptEnrichments)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &About{log: log, known: known}
}

// errHeadless says that a stream does not tell what it is about.
var errHeadless = errors.New("the stream does not start as a job or a session does")

var errSeen = errors.New("seen enough")

// Event gives what an announced event is to be told with. A *consumer.PoisonError says that no
// repeat can succeed.
func (n *About) Event(ctx context.Context, r domain.Recorded) (announce.Enrichment, error) {
	switch e := r.Event.(type) {
	case *loop.Ended:
		return announce.Enrichment{Submission: job.Submission{ProjectID: e.ProjectID}}, nil
	case *session.Started, *session.Completed: // two in a session's life: not worth remembering
		return n.loadStream(ctx, r.Stream, r.Revision)
	case *project.WebhookDisabled:
		return n.loadStream(ctx, r.Stream, r.Revision)
	case *credits.Debited:
		return announce.Enrichment{Submission: job.Submission{AccountID: r.StreamID()}}, nil
	}
	about, begins := announce.Begin(r)
	if !begins {
		known, err := n.recallJob(ctx, r)
		if err != nil {
			return announce.Enrichment{}, err
		}
		about = known
		about.Learn(r.Event)
	}
	n.known.Add(r.Stream, about)
	return about, nil
}

// recallJob gives what the job has told before the event.
func (n *About) recallJob(ctx context.Context, r domain.Recorded) (announce.Enrichment, error) {
	about, known := n.known.Get(r.Stream)
	_, analysed := r.Event.(*job.AIReportReady)
	switch {
	case analysed && about.ReportID == "": // it passed by long ago, or when there was no webhook
		return n.loadStream(ctx, r.Stream, r.Revision)
	case !known:
		return n.loadStream(ctx, r.Stream, 1)
	}
	return about, nil
}

// loadStream folds the stream's events before a revision.
func (n *About) loadStream(ctx context.Context, stream string, before uint64) (announce.Enrichment, error) {
	var about announce.Enrichment
	headed := false
	err := n.log.Load(ctx, stream, 0, func(r domain.Recorded) error {
		if r.Revision >= before {
			return errSeen
		}
		if head, begins := announce.Begin(r); begins {
			about, headed = head, true
		} else {
			about.Learn(r.Event)
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errSeen):
		return announce.Enrichment{}, fmt.Errorf("load %s: %w", stream, err)
	case !headed:
		return announce.Enrichment{}, noPayload(fmt.Errorf("%s: %w", stream, errHeadless))
	}
	return about, nil
}

// Forget drops what a stream has told.
func (n *About) Forget(stream string) { n.known.Remove(stream) }

// Project gives a project's name; empty where there is none.
func (n *About) Project(ctx context.Context, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	about, err := n.loadStream(ctx, domain.ProjectStream(id), math.MaxUint64)
	if errors.Is(err, errHeadless) {
		return "", nil
	}
	return about.Title, err
}
