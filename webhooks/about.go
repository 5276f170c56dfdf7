package webhooks

import (
	"context"
	"errors"
	"math"

	"humanqa/domain"
	"humanqa/domain/announce"
)

// About tells what announced events are about, to other consumers of the log. It belongs to
// one goroutine.
type About struct{ enricher *enricher }

// NewAbout makes one that asks the log about streams that it has not seen begin.
func NewAbout(log domain.Log) About { return About{newEnricher(log)} }

// Event gives what an event is to be told with. It remembers the jobs that pass by, so
// job.created belongs to its events. A *consumer.PoisonError says that no repeat can succeed.
func (a About) Event(ctx context.Context, r domain.Recorded) (announce.Enrichment, error) {
	about, err := a.enricher.enrichEvent(ctx, r)
	if errors.Is(err, errHeadless) {
		return announce.Enrichment{}, noPayload(err)
	}
	return about, err
}

// Forget drops what a stream has told.
func (a About) Forget(stream string) { a.enricher.known.Remove(stream) }

// Project gives a project's name; empty where there is none.
func (a About) Project(ctx context.Context, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	about, err := a.enricher.loadStream(ctx, domain.ProjectStream(id), math.MaxUint64)
	if errors.Is(err, errHeadless) {
		return "", nil
	}
	return about.Title, err
}
