package admit

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/projections/access"
)

// Limits, in requests per sliding minute.
const (
	// clientRate is for each API key (specification, "Limits"), each project's deploy
	// hook, and each address that sends invalid credentials.
	clientRate = 60
	// checkerRate is for each checker key: a checker sends one request for each item, and
	// heartbeats as well.
	checkerRate = 300

	rateWindow = time.Minute
	// rateSlots bounds the times that a row keeps. Up to this limit each request has a
	// slot of its own. Above it a slot holds several requests and is as young as its
	// youngest, so that a slot's worth, a 300th of the limit, may be missing. Never more
	// than the limit is admitted.
	rateSlots = 300
)

// MaxRateLimit is the highest Deps.RateLimit.
const MaxRateLimit = 1_000_000_000

// limiter admits a fixed number of requests of each caller in any minute, over all nodes.
// It never admits one more (invariant 17), and never one less, because a refused request
// takes no place. It counts the times of the admitted requests; there are no fixed
// windows and no average.
//
// Each request is one statement; requests of one caller that wait at the same time share
// one (coalescer). It looks an API key up, too. It locks the caller's row before it reads
// Postgres' clock. So the times are in the order of the decisions, and no node's own
// clock matters. If that clock is set back, the times that lie ahead count as now. A
// minute later at most everything is as before, and no minute had too many.
//
// A row for each second would be plainer, but two nodes that write rows of different seconds
// do not see each other's. It needs a lock before it counts: two more statements, twice the
// time with many keys, and eighty times with one (measured side by side).
type limiter struct {
	db      *sqlx.DB
	clients int // requests a minute of an API key, a hook, an address
	callers coalescer[Allowance]
	keys    coalescer[countedKey] // by the hash of their tokens
	used    sync.Map              // the last minute in which a key's use was written, by its id
}

func NewLimiter(db *sqlx.DB, clients int) *limiter {
	return &limiter{db: db, clients: cmp.Or(clients, clientRate)}
}

// Allowance is the rest of a caller's limit after a request.
type Allowance struct {
	limit     int
	remaining int
	Reset     int // seconds until the oldest request that counts is a minute old
	Admitted  bool
}

// countSQLFor takes $5 places of each caller, at most as many as the limit, $2, or none;
// a slot holds $3 requests, the window is $4 microseconds. It must not read the clock
// before it holds the row: DO UPDATE computes its values after locking. The clock's
// subquery is volatile, so it is evaluated once a statement and not inlined. Their OFFSET
// keeps the other subqueries from being inlined, too: else each place that names them
// would compute them anew.
const countSQLFor = `
INSERT INTO http_rate AS r (caller, slots, last, at, admitted)
SELECT who.caller, array_fill(now.us, ARRAY[($5::integer + $3::integer - 1) / $3]), ($5 - 1) %% $3 + 1, now.us, true
FROM (SELECT (EXTRACT(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS now
CROSS JOIN (%s) AS who (caller)
ON CONFLICT (caller) DO UPDATE
SET (slots, last, at, admitted) = (
    SELECT CASE WHEN counted.requests + $5 > $2 THEN live.slots
                ELSE live.slots[:cardinality(live.slots) - sign(counted.begun)::integer]
                     || array_fill(now.us, ARRAY[(counted.begun + $5 + $3 - 1) / $3]) END,
           CASE WHEN counted.requests + $5 > $2 THEN r.last
                ELSE (counted.begun + $5 - 1) %% $3 + 1 END,
           now.us,
           counted.requests + $5 <= $2
    FROM (SELECT (EXTRACT(epoch FROM clock_timestamp()) * 1000000)::bigint AS us) AS now,
         LATERAL (SELECT ARRAY(
             SELECT LEAST(slot, now.us)
             FROM unnest(r.slots) AS slot
             WHERE slot > now.us - $4
             ORDER BY slot) AS slots OFFSET 0) AS live,
         LATERAL (SELECT CASE WHEN cardinality(live.slots) = 0 THEN 0
                         ELSE (cardinality(live.slots) - 1) * $3 + r.last END AS requests,
                         CASE WHEN cardinality(live.slots) = 0 OR r.last >= $3 THEN 0
                         ELSE r.last END AS begun OFFSET 0) AS counted)
RETURNING admitted, (cardinality(slots) - 1) * $3 + last AS counted, slots[1] + $4 - at AS free_in`

var (
	countSQL = fmt.Sprintf(countSQLFor, `SELECT $1::text`)

	// countKeySQL looks an API key up by the hash of its token, $1, and takes places for
	// it if it is valid at $6.
	countKeySQL = `
WITH key AS MATERIALIZED (` + access.KeySQL + `),
taken AS (` + fmt.Sprintf(countSQLFor, `
    SELECT 'key:' || key_id
    FROM key
    WHERE NOT revoked
      AND NOT suspended
      AND (expires_at IS NULL OR expires_at > $6)`) + `)
SELECT key.*, coalesce(admitted, false), coalesce(counted, 0), coalesce(free_in, 0)
FROM key
LEFT JOIN taken ON true`
)

// CountRequest asks for a place.
func (l *limiter) CountRequest(ctx context.Context, caller string, limit int) (Allowance, error) {
	return l.callers.lookUp(ctx, caller, func(ctx context.Context, n int) ([]Allowance, error) {
		return l.countRequests(ctx, caller, limit, n)
	})
}

// countRequests asks for places for all of n requests.
func (l *limiter) countRequests(ctx context.Context, caller string, limit, n int) ([]Allowance, error) {
	return countTogether(limit, n, func(n int) (Allowance, error) {
		var row countedRow
		if err := l.db.QueryRowContext(ctx, countSQL, l.countParameters(limit, n, caller)...).Scan(row.columns()...); err != nil {
			return Allowance{}, fmt.Errorf("count the request of %s: %w", caller, err)
		}
		return row.allowance(limit), nil
	})
}

// countedKey is the key that was found for a token, and the place of one request with it.
// A refused key took no place.
type countedKey struct {
	access.Key
	Refused   error
	Allowance Allowance
}

// countKeyRequest asks for a place of the API key whose token has the hash.
func (l *limiter) countKeyRequest(ctx context.Context, hash string, now time.Time) (countedKey, error) {
	return l.keys.lookUp(ctx, hash, func(ctx context.Context, n int) ([]countedKey, error) {
		return l.CountKeyRequests(ctx, hash, now.Truncate(time.Microsecond), n)
	})
}

// CountKeyRequests asks for places for all of n requests. now is whole microseconds, as
// Postgres compares them.
func (l *limiter) CountKeyRequests(ctx context.Context, hash string, now time.Time, n int) ([]countedKey, error) {
	var key countedKey // as it was looked up last
	allowances, err := countTogether(l.clients, n, func(n int) (Allowance, error) {
		var row countedRow
		found, rowed, err := access.ScanKey(l.db.QueryRowContext(ctx, countKeySQL, append(l.countParameters(l.clients, n, hash), now)...),
			row.columns()...)
		if err != nil {
			return Allowance{}, err
		}
		key = countedKey{Key: found, Refused: mayCall(found, rowed, now)}
		return row.allowance(l.clients), nil
	})
	if err != nil {
		return nil, err
	}
	keys := make([]countedKey, n)
	for i, q := range allowances {
		keys[i] = key
		keys[i].Allowance = q
	}
	return keys, nil
}

// countTogether takes places for n requests at once, or for one after the other where too
// few are left. After the first refusal all later requests are refused, too.
func countTogether(limit, n int, take func(n int) (Allowance, error)) ([]Allowance, error) {
	allowances := make([]Allowance, n)
	if n > 1 && n <= limit {
		all, err := take(n)
		if err != nil {
			return nil, err
		}
		if all.Admitted {
			for i := range allowances {
				allowances[i] = all
				allowances[i].remaining += n - 1 - i
			}
			return allowances, nil
		}
	}
	for i := range allowances {
		if i > 0 && !allowances[i-1].Admitted {
			allowances[i] = allowances[i-1]
			continue
		}
		var err error
		if allowances[i], err = take(1); err != nil {
			return nil, err
		}
	}
	return allowances, nil
}

// countParameters are the parameters of countSQLFor.
func (*limiter) countParameters(limit, n int, who string) []any {
	return []any{who, limit, (limit + rateSlots - 1) / rateSlots, rateWindow.Microseconds(), n}
}

// countedRow is the answer of countSQLFor.
type countedRow struct {
	admitted bool
	counted  int
	freeIn   int64 // microseconds
}

func (t *countedRow) columns() []any { return []any{&t.admitted, &t.counted, &t.freeIn} }

func (t *countedRow) allowance(limit int) Allowance {
	return Allowance{
		limit:     limit,
		remaining: max(0, limit-t.counted),
		Reset:     int((t.freeIn + 999_999) / 1_000_000),
		Admitted:  t.admitted,
	}
}

const forgetRatesSQL = `
DELETE FROM http_rate
WHERE at < (EXTRACT(epoch FROM clock_timestamp()) * 1000000)::bigint - $1`

// Sweep removes the callers without a request in the last minute. A caller that comes
// back meanwhile has a new time, and stays.
func (l *limiter) Sweep(ctx context.Context) error {
	if _, err := l.db.ExecContext(ctx, forgetRatesSQL, rateWindow.Microseconds()); err != nil {
		return fmt.Errorf("sweep rate limits: %w", err)
	}
	l.forgetUses(time.Now())
	return nil
}

// countCaller is the 429 of the order of checks. It shows the allowance in the headers of
// every answer that was counted, admitted or not.
func (g *Gate) countCaller(ctx context.Context, h http.Header, caller string, limit int) error {
	q, err := g.Limits.CountRequest(ctx, caller, limit)
	if err != nil {
		return err
	}
	return q.ShowIn(h)
}

// ShowIn is countCaller for a request that was counted before.
func (q Allowance) ShowIn(h http.Header) error {
	h.Set("X-RateLimit-Limit", strconv.Itoa(q.limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(q.remaining))
	h.Set("X-RateLimit-Reset", strconv.Itoa(q.Reset))
	if q.Admitted {
		return nil
	}
	return wire.RetryAfter(&domain.Error{
		Kind: domain.KindRateLimited, Code: domain.CodeRateLimited,
		Message: fmt.Sprintf("more than %d requests in a minute", q.limit),
		Hint:    fmt.Sprintf("wait %d s, then send the request again", q.Reset),
	}, q.Reset)
}

// LimitCaller counts a request whose credential was accepted.
func (g *Gate) LimitCaller(r *wire.Request, counted *Allowance, h http.Header) error {
	switch {
	case r.Caller.Actor == "": // the route needs no credential
		return nil
	case counted != nil:
		return counted.ShowIn(h)
	case r.Audience == wire.Checkers:
		return g.countCaller(r.Context(), h, r.Caller.Actor, max(checkerRate, g.Limits.clients))
	}
	return g.countCaller(r.Context(), h, r.Caller.Actor, g.Limits.clients)
}

// LimitStranger counts a request without a valid credential by its address, which bounds
// the guesses of keys and hook tokens in a minute. refused is the answer while there is a
// place.
func (g *Gate) LimitStranger(r *wire.Request, h http.Header, refused error) error {
	if err := g.countCaller(r.Context(), h, "address:"+Address(r.RemoteAddr), g.Limits.clients); err != nil {
		return err
	}
	return refused
}

// Address is the address that a connection comes from; for IPv6 it is the network,
// because one client has all of a /64. Behind a proxy it is the client's only where the
// proxy is trusted (Reach); else strangers share the proxy's places.
func Address(remote string) string {
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
