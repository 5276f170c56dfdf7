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

// keptEnrichments bounds the remembered streams: a few hundred bytes each.
const keptEnrichments = 20_000

// About gives the enrichments of announced events. It remembers the enrichments of the
// latest jobs, so job.created must be among its events, and reads other streams from the
// log. It belongs to one goroutine.
type About struct {
	log   domain.Log
	known *lru.Cache[string, announce.Enrichment] // by stream
}

// NewAbout makes an About that reads a stream from the log if it has not seen the
// stream's first event.
func NewAbout(log domain.Log) *About {
	known, _ := lru.New[string, announce.Enrichment](keptEnrichments) // the size is positive
	return &About{log: log, known: known}
}

// errHeadless says that the first event of a stream gives no enrichment.
var errHeadless = errors.New("the stream does not start as a job or a session does")

var errSeen = errors.New("seen enough")

// Event gives the enrichment of an announced event. A *consumer.PoisonError says that no
// repeat can succeed.
func (n *About) Event(ctx context.Context, r domain.Recorded) (announce.Enrichment, error) {
	switch e := r.Event.(type) {
	case *loop.Ended:
		return announce.Enrichment{Submission: job.Submission{ProjectID: e.ProjectID}}, nil
	case *session.Started, *session.Completed, *project.WebhookDisabled, *project.ChatSet: // few in a stream's life: not worth remembering
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

// recallJob gives the job's enrichment before the event.
func (n *About) recallJob(ctx context.Context, r domain.Recorded) (announce.Enrichment, error) {
	about, known := n.known.Get(r.Stream)
	kind, _ := announce.Of(r.Event)
	switch {
	case kind.Reported && about.ReportID == "": // its report came long ago, or when there was no webhook
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

// Forget drops the enrichment of a stream.
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
