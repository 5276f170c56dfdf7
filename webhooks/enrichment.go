package webhooks

import (
	"context"
	"errors"
	"fmt"

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

// enricher remembers what the jobs that passed by last have told, and asks the
// log about others. It belongs to one goroutine.
type enricher struct {
	log   domain.Log
	known *lru.Cache[string, announce.Enrichment] // by stream
}

func newEnricher(log domain.Log) *enricher {
	known, err := lru.New[string, announce.Enrichment](keptEnrichments)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &enricher{log: log, known: known}
}

// errHeadless says that a stream does not tell what it is about.
var errHeadless = errors.New("the stream does not start as a job or a session does")

var errSeen = errors.New("seen enough")

// enrichEvent gives what an announced event is to be told with.
func (n *enricher) enrichEvent(ctx context.Context, r domain.Recorded) (announce.Enrichment, error) {
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
func (n *enricher) recallJob(ctx context.Context, r domain.Recorded) (announce.Enrichment, error) {
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
func (n *enricher) loadStream(ctx context.Context, stream string, before uint64) (announce.Enrichment, error) {
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
		return announce.Enrichment{}, fmt.Errorf("%s: %w", stream, errHeadless)
	}
	return about, nil
}
