package eventstore

import (
	"context"
	"errors"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/domain"
)

// subscribe follows the whole log behind a checkpoint. It is not filtered: the
// few system events cost less than the checkpoints a filter needs to keep the
// position moving.
func (c *Client) subscribe(ctx context.Context, from Checkpoint) <-chan arrival {
	arriving, _ := start(ctx, c.connector(), func(ctx context.Context, client *esdb.Client, hand func(arrival) bool) error {
		opts := esdb.SubscribeToAllOptions{From: esdb.Start{}}
		if !from.Start {
			opts.From = esdb.Position{Commit: from.Position.Commit, Prepare: from.Position.Prepare}
		}
		// The library waits for the confirmation without a time-out.
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		confirmed := time.AfterFunc(c.call, func() { cancel(errNoAnswer) })
		defer confirmed.Stop()
		sub, err := client.SubscribeToAll(ctx, opts)
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errNoAnswer) {
				return cause
			}
			return err
		}
		defer func() { _ = sub.Close() }() // it only cancels, and always gives nil
		confirmed.Stop()
		if !hand(arrival{opened: true}) {
			return ctx.Err()
		}
		for {
			got := sub.Recv()
			switch {
			case got.SubscriptionDropped != nil:
				return got.SubscriptionDropped.Error
			case got.EventAppeared != nil && got.EventAppeared.OriginalEvent() != nil:
				if !hand(arrival{event: got.EventAppeared.OriginalEvent()}) {
					return ctx.Err()
				}
			case got.CheckPointReached != nil:
				reached := domain.Position{Commit: got.CheckPointReached.Commit, Prepare: got.CheckPointReached.Prepare}
				if !hand(arrival{reached: &reached}) {
					return ctx.Err()
				}
			}
		}
	})
	return arriving // a silent subscription is no reason to check its connection
}
