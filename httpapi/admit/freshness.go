package admit

import (
	"context"
	"fmt"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/internal/tracing"
)

// Freshness waits, for a while, until what is read shows what was answered before.
type Freshness struct {
	models, feed, webhooks func(context.Context) error
	log                    logrus.FieldLogger
}

// NewFreshness is told how to wait for all read models, for the feed of events, and for
// the webhooks.
func NewFreshness(models, feed, webhooks func(context.Context) error, log logrus.FieldLogger) *Freshness {
	return &Freshness{models: models, feed: feed, webhooks: webhooks, log: log}
}

// RequireModels refuses a read that would deny what read models that are behind do not
// show yet.
func (f *Freshness) RequireModels(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, VisibleWithin)
	defer cancel()
	if err := f.models(short); err != nil {
		return domain.Unavailable(fmt.Errorf("the read models are behind: %w", err))
	}
	return nil
}

// Feed waits until the feed of events shows what the other read models do, for a moment
// at most. Writes don't wait for it: it gathers.
func (f *Freshness) Feed(ctx context.Context, log logrus.FieldLogger) {
	short, cancel := context.WithTimeout(ctx, VisibleWithin)
	defer cancel()
	if err := f.feed(short); err != nil && ctx.Err() == nil {
		log.WithError(err).Warn("the feed was read before it caught up")
	}
}

// RequireFeed refuses a read that would tell wrongly what a feed that is behind does not
// hold yet.
func (f *Freshness) RequireFeed(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, VisibleWithin)
	defer cancel()
	if err := f.feed(short); err != nil {
		return domain.Unavailable(fmt.Errorf("the feed of events is behind: %w", err))
	}
	return nil
}

// Webhooks waits until the webhooks know what was answered before: a client that has
// enabled one may replay at once.
func (f *Freshness) Webhooks(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, VisibleWithin)
	defer cancel()
	if err := f.webhooks(short); err != nil && ctx.Err() == nil {
		tracing.Log(ctx, f.log).WithError(err).Warn("the webhooks were used before they caught up")
	}
}
