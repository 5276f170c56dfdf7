package consumer

import (
	"context"
	"strings"

	"humanqa/domain"
	"humanqa/internal/tracing"
)

// startBatch begins the span of a transaction with the rows of events, of one consumer or
// of several.
func startBatch(ctx context.Context, t *tracing.Tracer, events []domain.Recorded, consumers ...string) (context.Context, tracing.Span) {
	ctx, span := t.StartCaused(ctx, "projection batch", func(yield func(string) bool) {
		for i := range events {
			if !yield(events[i].Meta.Trace) {
				return
			}
		}
	})
	span.Note("humanqa.consumers", strings.Join(consumers, " "))
	span.Count("humanqa.events", len(events))
	return ctx, span
}

func namesOf(participants []*participant) (names []string) {
	for _, r := range participants {
		names = append(names, r.tenure.lease.Gen.Name)
	}
	return names
}
