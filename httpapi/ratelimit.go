package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
)

// Limits, in requests per sliding minute.
const (
	// clientRate is for each API key (specification, "Limits"), each project's
	// deploy hook, and each address that sends credentials which are none.
	clientRate = 60
	// checkerRate is for each checker key: a checker sends a request an item,
	// and heartbeats beside them.
	checkerRate = 300

	rateWindow = time.Minute
	// rateSlots bounds the times that a row keeps. Up to this limit each
	// request has a slot of its own; above, a slot holds several and is as
	// young as its youngest, so that a slot's worth, a 300th of the limit, may
	// be missing. Never more than the limit is admitted.
	rateSlots = 300
)

// MaxRateLimit is the highest Deps.RateLimit.
const MaxRateLimit = 1_000_000_000

// limiter admits, to each caller, so many requests in any minute over all
// nodes: never one more (invariant 17), and never one less, because a refused
// request takes no place. There are no fixed windows and no average: the times
// of the admitted requests are what is counted.
//
// Each request is one statement, or one with those of its caller that wait at the
// same time (gathering). It locks the caller's row before it looks at the clock, which is Postgres', so that the order of the times is the order of
// the decisions and no node's own clock matters. Should that clock be set back,
// the times that now lie ahead count as just now: a minute later at most
// everything is as before, and no minute had too many.
type limiter struct {
	db      *sqlx.DB
	clients int // requests a minute of an API key, a hook, an address
	callers gathering[quota]
}

func newLimiter(db *sqlx.DB, clients int) *limiter {
	if clients == 0 {
		clients = clientRate
	}
	return &limiter{db: db, clients: clients}
}

// quota is what a caller has left after a request.
type quota struct {
	limit     int
	remaining int
	reset     int // seconds until the oldest request that counts is a minute old
	admitted  bool
}

// takeSQL takes $5 places, at most as many as the limit, or none. It must not look
// at the clock before it holds the row: what DO UPDATE computes, it computes after
// locking. The clock's subquery is volatile, so it is read once a statement and not
// folded away.
const takeSQL = `
INSERT INTO http_rate AS r (caller, slots, last, at, admitted)
SELECT $1, array_fill(now.us, ARRAY[($5::integer + $3::integer - 1) / $3]), ($5 - 1) % $3 + 1, now.us, true
FROM (SELECT (EXTRACT(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS now
ON CONFLICT (caller) DO UPDATE
SET (slots, last, at, admitted) = (
    SELECT CASE WHEN counted.requests + $5 > $2 THEN live.slots
                ELSE live.slots[:cardinality(live.slots) - sign(counted.begun)::integer]
                     || array_fill(now.us, ARRAY[(counted.begun + $5 + $3 - 1) / $3]) END,
           CASE WHEN counted.requests + $5 > $2 THEN r.last
                ELSE (counted.begun + $5 - 1) % $3 + 1 END,
           now.us,
           counted.requests + $5 <= $2
    FROM (SELECT (EXTRACT(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS now,
         LATERAL (SELECT ARRAY(
             SELECT LEAST(slot, now.us)
             FROM unnest(r.slots) AS slot
             WHERE slot > now.us - $4
             ORDER BY slot) AS slots) AS live,
         LATERAL (SELECT CASE WHEN cardinality(live.slots) = 0 THEN 0
                         ELSE (cardinality(live.slots) - 1) * $3 + r.last END AS requests,
                         CASE WHEN cardinality(live.slots) = 0 OR r.last >= $3 THEN 0
                         ELSE r.last END AS begun) AS counted)
RETURNING admitted, (cardinality(slots) - 1) * $3 + last AS counted, slots[1] + $4 - at AS free_in`

// take asks for a place.
func (l *limiter) take(ctx context.Context, caller string, limit int) (quota, error) {
	return l.callers.ask(ctx, caller, func(ctx context.Context, n int) ([]quota, error) {
		return l.takeMany(ctx, caller, limit, n)
	})
}

// takeMany asks for places for all of n requests, and where there are not so many
// for one after the other: who is behind the first that gets none gets none.
func (l *limiter) takeMany(ctx context.Context, caller string, limit, n int) ([]quota, error) {
	quotas := make([]quota, n)
	if n > 1 && n <= limit {
		all, err := l.takeAll(ctx, caller, limit, n)
		if err != nil {
			return nil, err
		}
		if all.admitted {
			for i := range quotas {
				quotas[i] = all
				quotas[i].remaining += n - 1 - i
			}
			return quotas, nil
		}
	}
	for i := range quotas {
		if i > 0 && !quotas[i-1].admitted {
			quotas[i] = quotas[i-1]
			continue
		}
		var err error
		if quotas[i], err = l.takeAll(ctx, caller, limit, 1); err != nil {
			return nil, err
		}
	}
	return quotas, nil
}

// takeAll asks for n places, or none.
func (l *limiter) takeAll(ctx context.Context, caller string, limit, n int) (quota, error) {
	var row struct {
		Admitted bool  `db:"admitted"`
		Counted  int   `db:"counted"`
		FreeIn   int64 `db:"free_in"` // microseconds
	}
	perSlot := (limit + rateSlots - 1) / rateSlots
	err := l.db.GetContext(ctx, &row, takeSQL, caller, limit, perSlot, rateWindow.Microseconds(), n)
	if err != nil {
		return quota{}, fmt.Errorf("count the request of %s: %w", caller, err)
	}
	return quota{
		limit:     limit,
		remaining: max(0, limit-row.Counted),
		reset:     int((row.FreeIn + 999_999) / 1_000_000),
		admitted:  row.Admitted,
	}, nil
}

const forgetRatesSQL = `
DELETE FROM http_rate
WHERE at < (EXTRACT(epoch FROM clock_timestamp()) * 1000000)::bigint - $1`

// sweep removes the callers that a minute has passed over. One that comes back
// meanwhile has a new time, and stays.
func (l *limiter) sweep(ctx context.Context) error {
	if _, err := l.db.ExecContext(ctx, forgetRatesSQL, rateWindow.Microseconds()); err != nil {
		return fmt.Errorf("sweep rate limits: %w", err)
	}
	return nil
}

// limit is the 429 of the order of checks. It shows what is left on every
// answer that was counted, admitted or not.
func (a *API) limit(ctx context.Context, h http.Header, caller string, limit int) error {
	q, err := a.limits.take(ctx, caller, limit)
	if err != nil {
		return err
	}
	h.Set("X-RateLimit-Limit", strconv.Itoa(q.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(q.remaining))
	h.Set("X-RateLimit-Reset", strconv.Itoa(q.reset))
	if q.admitted {
		return nil
	}
	return retryAfter(&domain.Error{
		Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
		Message: fmt.Sprintf("more than %d requests in a minute", q.limit),
		Hint:    fmt.Sprintf("wait %d s, then send the request again", q.reset),
	}, q.reset)
}

// limitCaller counts a request whose credential was accepted.
func (a *API) limitCaller(r *request, h http.Header) error {
	switch {
	case r.caller.actor == "": // nobody was asked who they are
		return nil
	case r.audience == checkers:
		return a.limit(r.Context(), h, r.caller.actor, max(checkerRate, a.limits.clients))
	}
	return a.limit(r.Context(), h, r.caller.actor, a.limits.clients)
}

// limitStranger counts a request whose credential is none, by its address: who
// guesses keys or hook tokens gets so many guesses a minute. refused is what
// the request is answered while there is a place.
func (a *API) limitStranger(r *request, h http.Header, refused error) error {
	if err := a.limit(r.Context(), h, "address:"+address(r.RemoteAddr), a.limits.clients); err != nil {
		return err
	}
	return refused
}

// address is where a connection comes from; of IPv6 the network, because one
// client has all of a /64. Behind a proxy it is the client's only where the proxy
// is trusted (Reach); else strangers share the proxy's places.
func address(remote string) string {
	peer, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "unknown"
	}
	ip := peer.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}
