package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"humanqa/internal/receiver"
)

// inbox is a receiver whose deliveries are asked for one after the other.
type inbox struct {
	url        string
	deliveries chan receiver.Delivery
	stop       func() error
	secret     atomic.Value    // a text, once it is known
	seen       map[string]bool // delivery ids that next has given
}

// inboxSize is more than a demo is ever sent.
const inboxSize = 64

func openInbox(ctx context.Context, dir string) (*inbox, error) {
	in := &inbox{deliveries: make(chan receiver.Delivery, inboxSize), seen: make(map[string]bool)}
	server, err := receiver.New(ctx, receiver.Config{
		Dir: dir,
		Secret: func() []byte {
			secret, _ := in.secret.Load().(string)
			return []byte(secret)
		},
		Received: func(_ context.Context, r receiver.Delivery) int {
			in.deliveries <- r
			return http.StatusNoContent
		},
	})
	if err != nil {
		return nil, err
	}
	in.url = server.URL()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	in.stop = func() error {
		cancel()
		return <-ended
	}
	return in, nil
}

// next waits for a delivery that was not there before: each comes at least
// once, and a repeat has the same id.
func (in *inbox) next(ctx context.Context) (receiver.Delivery, error) {
	for {
		select {
		case r := <-in.deliveries:
			if !in.seen[r.DeliveryID] {
				in.seen[r.DeliveryID] = true
				return r, nil
			}
		case <-ctx.Done():
			return receiver.Delivery{}, fmt.Errorf("wait for a webhook: %w", ctx.Err())
		}
	}
}
