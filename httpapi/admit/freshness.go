package admit

import (
	"context"
	"errors"
	"fmt"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/tracing"
)

// Freshness waits, for a bounded time, until a read shows everything that earlier answers
// showed.
type Freshness struct {
	models, feed, webhooks func(context.Context) error
	log                    logrus.FieldLogger
}

// NewFreshness takes the waits for all read models, for the feed of events, and for the
// webhooks.
func NewFreshness(models, feed, webhooks func(context.Context) error, log logrus.FieldLogger) *Freshness {
	return &Freshness{models: models, feed: feed, webhooks: webhooks, log: log}
}

// AtHead looks for something. If the look says that it has not happened, or is not there, it
// looks once more when the read models show the log's newest position (decisions, "Not yet").
// It refuses the read if they stay behind: the look might deny what a client was told of.
func AtHead[T any](ctx context.Context, f *Freshness, look func() (T, error), saysNotYet func(T, error) bool) (T, error) {
	found, err := look()
	if !saysNotYet(found, err) {
		return found, err
	}
	if err := f.requireModels(ctx); err != nil {
		return *new(T), err
	}
	return look()
}

// Refused says that a look ended with a refusal.
func Refused[T any](_ T, err error) bool {
	_, refused := errors.AsType[*domain.Error](err)
	return refused
}

// requireModels waits for the read models. It refuses the read if they stay behind.
func (f *Freshness) requireModels(ctx context.Context) error {
	return require(ctx, f.models, "the read models are behind")
}

// retryBehind is the Retry-After, in seconds, while read models are behind.
const retryBehind = 1

// require waits, and refuses the read for now if that is in vain. Where the client hung up
// meanwhile, the error is only its consequence.
func require(ctx context.Context, shown func(context.Context) error, behind string) error {
	short, cancel := context.WithTimeout(ctx, VisibleWithin)
	defer cancel()
	err := shown(short)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", behind, err)
	if errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	return wire.RetryAfter(domain.Unavailable(err), retryBehind)
}

// Feed waits until the feed of events shows as much as the other read models, for a
// moment at most. Writes don't wait for the feed, because it gathers events for a moment.
func (f *Freshness) Feed(ctx context.Context, log logrus.FieldLogger) {
	short, cancel := context.WithTimeout(ctx, VisibleWithin)
	defer cancel()
	if err := f.feed(short); err != nil && ctx.Err() == nil {
		log.WithError(err).Warn("the feed was read before it caught up")
	}
}

// RequireFeed waits for the feed of events. It refuses the read if the feed stays behind:
// its answer would be wrong.
func (f *Freshness) RequireFeed(ctx context.Context) error {
	return require(ctx, f.feed, "the feed of events is behind")
}

// Webhooks waits until the webhooks know everything that earlier answers showed: a client
// that has enabled one may replay at once.
func (f *Freshness) Webhooks(ctx context.Context) {
	short, cancel := context.WithTimeout(ctx, VisibleWithin)
	defer cancel()
	if err := f.webhooks(short); err != nil && ctx.Err() == nil {
		tracing.Log(ctx, f.log).WithError(err).Warn("the webhooks were used before they caught up")
	}
}
