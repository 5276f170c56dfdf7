package pgpool

import (
	"context"
	"net/url"
	"time"

	"github.com/lib/pq"
)

// How long Postgres may be away before Listen tries to connect again.
const listenMinWait, listenMaxWait = 100 * time.Millisecond, 5 * time.Second

// Listen gives a channel that gets a value after a notification, and after each
// new connection, because a notification may have been missed. Several values that were
// not received yet are one. It has a connection of its own, until ctx ends. While
// Postgres is away no value comes, so the caller must also look now and then.
//
// interrupted, which may be nil, is told of lost connections.
func Listen(ctx context.Context, dsn, channel string, interrupted func(error)) (wake <-chan struct{}) {
	return ListenTo(ctx, dsn, channel, func(string) (taken bool) { return false }, interrupted)
}

// ListenTo is Listen that hands each notification's payload to take first, empty after
// a new connection. A payload that is taken does not wake the channel's reader.
func ListenTo(
	ctx context.Context, dsn, channel string, take func(payload string) (taken bool), interrupted func(error),
) (wake <-chan struct{}) {
	listener := pq.NewListener(dsn, listenMinWait, listenMaxWait, func(_ pq.ListenerEventType, err error) {
		if err != nil && interrupted != nil && ctx.Err() == nil {
			interrupted(err)
		}
	})
	woken := make(chan struct{}, 1)
	tell := func() {
		select {
		case woken <- struct{}{}:
		default: // one is waiting already
		}
	}
	go func() {
		// Waits for the first connection, or for the listener's end.
		if err := listener.Listen(channel); err == nil {
			tell()
		}
	}()
	// Close waits for a dial that is under way, so it must not block here; no data
	// is lost with the connection.
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go func() {
		for n := range listener.Notify { // also nil, after a new connection; until it is closed
			payload := ""
			if n != nil {
				payload = n.Extra
			}
			if !take(payload) {
				tell()
			}
		}
	}()
	return woken
}

// Named gives a DSN, a URL or key=value pairs, whose connections carry the name
// in pg_stat_activity.
func Named(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return dsn + " application_name='" + name + "'"
	}
	q := u.Query()
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	return u.String()
}
