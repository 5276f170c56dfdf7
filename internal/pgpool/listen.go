package pgpool

import (
	"cmp"
	"context"
	"net/url"
	"time"

	"github.com/lib/pq"

	"humanqa/internal/backoff"
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
	woken := make(chan struct{}, 1)
	begun := false
	heard := func(payload string) {
		if taken := take(payload); taken && begun { // the first connection wakes the reader in any case
			return
		}
		begun = true
		select {
		case woken <- struct{}{}:
		default: // one is waiting already
		}
	}
	go func() {
		for wait := listenMinWait; ctx.Err() == nil; wait = min(2*wait, listenMaxWait) {
			connected, err := listen(ctx, dsn, channel, heard)
			if connected {
				wait = listenMinWait
			}
			if interrupted != nil && ctx.Err() == nil {
				interrupted(err)
			}
			_ = backoff.Wait(ctx, wait) // the loop finds out that ctx has ended
		}
	}()
	return woken
}

// listen hears notifications on one connection until it is lost, or until ctx ends. A dial
// that is under way then ends by itself.
func listen(ctx context.Context, dsn, channel string, heard func(payload string)) (connected bool, err error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return false, err
	}
	if followPrimary(&config); config.TargetSessionAttrs != "" {
		dsn = with(dsn, "target_session_attrs", string(config.TargetSessionAttrs))
	}
	notes := make(chan *pq.Notification, 32)
	conn, err := pq.NewListenerConn(dsn, notes)
	if err != nil {
		return false, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends the loop below; no data is lost with it
	defer stop()
	if _, err = conn.ExecSimpleQuery(sessionSQL); err == nil {
		_, err = conn.Listen(channel)
	}
	if connected = err == nil; connected {
		heard("")
	} else {
		_ = conn.Close()
	}
	for n := range notes {
		heard(n.Extra)
	}
	return connected, cmp.Or(err, conn.Err())
}

// Named gives a DSN, a URL or key=value pairs, whose connections carry the name
// in pg_stat_activity.
func Named(dsn, name string) string { return with(dsn, "application_name", name) }

// with gives a DSN with a parameter.
func with(dsn, parameter, value string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return dsn + " " + parameter + "='" + value + "'"
	}
	q := u.Query()
	q.Set(parameter, value)
	u.RawQuery = q.Encode()
	return u.String()
}
