package eventstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/domain"
)

// arrival is the next thing a read or a subscription brings.
type arrival struct {
	event   *esdb.RecordedEvent
	reached *domain.Position // a checkpoint of the subscription, without an event
	opened  bool             // a subscription was confirmed
	err     error            // of the end; nil if the node ended it
}

// isEnd says that no further arrival follows.
func (a arrival) isEnd() bool { return a.event == nil && a.reached == nil && !a.opened }

// start runs a read inside the library and passes its events over a channel. So its
// consumer can leave at any time by ending ctx. The cause errNoAnswer blames the
// connection. The goroutine ends with ctx, or later if the library does not heed it.
// suspect has the read's connection checked.
func start(
	ctx context.Context, k *connector, run func(context.Context, *esdb.Client, func(arrival) bool) error,
) (_ <-chan arrival, suspect func()) {
	arriving := make(chan arrival, 128)
	var on atomic.Pointer[connection]
	suspect = func() {
		if conn := on.Load(); conn != nil {
			go k.look(conn)
		}
	}
	hand := func(a arrival) bool {
		select {
		case arriving <- a:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		conn, err := k.acquire(ctx)
		if err != nil {
			hand(arrival{err: err})
			return
		}
		on.Store(conn)
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(conn.life, cancel)()
		defer context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), errNoAnswer) {
				k.blame(conn)
			}
		})()
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("%w: %v", errLibrary, r)
			}
			if k.life.Err() != nil {
				err = ErrClosed
			}
			if ctx.Err() == nil {
				k.release(conn, err)
			} else {
				k.endCall(conn) // the consumer left: the error tells nothing about the connection
			}
			hand(arrival{err: err})
		}()
		entered, leave, err := conn.gate.enter(inner)
		if err != nil {
			return
		}
		defer leave()
		err = run(entered, conn.client, hand)
	}()
	return arriving, suspect
}
