// Package ledger is the read model of the ledgers' entries.
package ledger

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps every entry of each ledger, one row an event, with the balance that the
// event itself has.
var Projector = readmodel.New(readmodel.Spec{
	Name: "ledger", Version: 3,
	Tables:  []consumer.Table{{Name: "ledger_entries", DDL: ledgerEntriesDDL, Indexes: ledgerIndexes}},
	Handles: domain.TypesOf((*credits.Granted)(nil), (*credits.Debited)(nil), (*credits.Refunded)(nil), (*credits.LotExpired)(nil)),
	Apply:   apply,
})

const ledgerEntriesDDL = `
CREATE TABLE {schema}.ledger_entries (
    revision   bigint NOT NULL,
    change     bigint NOT NULL,
    expired    bigint NOT NULL,
    balance    bigint NOT NULL,
    at         timestamptz NOT NULL,
    lots       jsonb NOT NULL,
    account_id text NOT NULL,
    kind       text NOT NULL,
    job_id     text NOT NULL,
    reason     text NOT NULL,
    actor      text NOT NULL,
    request_id text NOT NULL
);
`

const ledgerIndexes = `
ALTER TABLE {schema}.ledger_entries ADD PRIMARY KEY (account_id, revision);
CREATE INDEX ledger_by_time ON {schema}.ledger_entries (account_id, at);
`

type ledgerRow struct {
	AccountID string         `json:"account_id"`
	Revision  uint64         `json:"revision"`
	Kind      string         `json:"kind"`
	Change    domain.Credits `json:"change"`
	Expired   domain.Credits `json:"expired"`
	Balance   domain.Credits `json:"balance"`
	JobID     string         `json:"job_id"`
	Reason    string         `json:"reason"`
	At        time.Time      `json:"at"`

	Lots      readmodel.List[Part] `json:"lots"`
	Actor     string               `json:"actor"`
	RequestID string               `json:"request_id"`
}

// Part is the amount that an entry took from, or gave to, one lot. Expired is the amount
// that came back to an expired lot.
type Part struct {
	LotID   string         `json:"lotId"`
	Change  domain.Credits `json:"change"`
	Expired domain.Credits `json:"expired,omitempty"`
}

// partsOf are the parts of a debit (sign -1) or a refund.
func partsOf(parts []credits.Part, sign domain.Credits) []Part {
	out := make([]Part, len(parts))
	for i, p := range parts {
		out[i] = Part{LotID: p.LotID, Change: sign * p.Amount}
		if p.Expired {
			out[i] = Part{LotID: p.LotID, Expired: p.Amount}
		}
	}
	return out
}

// The kinds of entries.
const (
	Granted  = "granted"
	Debited  = "debited"
	Refunded = "refunded"
	Expired  = "expired"
)

// apply writes a row an event.
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	rows := make([]ledgerRow, 0, len(batch))
	for _, r := range batch {
		row := ledgerRow{AccountID: r.StreamID(), Revision: r.Revision,
			At: readmodel.Moment(r.Meta.Time), Actor: r.Meta.Actor, RequestID: r.Meta.CorrelationID}
		row.Lots = []Part{}
		switch e := r.Event.(type) {
		case *credits.Granted:
			row.Kind, row.Change, row.Balance, row.Reason = Granted, e.Amount, e.BalanceAfter, e.Reason
			row.Lots = []Part{{LotID: e.LotID, Change: e.Amount}}
		case *credits.Debited:
			row.Kind, row.Change, row.Balance, row.JobID = Debited, -e.Amount, e.BalanceAfter, e.JobID
			row.Lots = partsOf(e.Parts, -1)
		case *credits.Refunded:
			row.Kind, row.Change, row.Expired = Refunded, e.Amount-e.Expired, e.Expired
			row.Balance, row.JobID, row.Reason = e.BalanceAfter, e.JobID, e.Reason
			row.Lots = partsOf(e.Parts, 1)
		case *credits.LotExpired:
			row.Kind, row.Change, row.Balance = Expired, -e.Amount, e.BalanceAfter
			row.Lots = []Part{{LotID: e.LotID, Change: -e.Amount}}
		}
		rows = append(rows, row)
	}
	return readmodel.Run(ctx, tx, schema, readmodel.Append("ledger_entries", rows))
}

// Reads reads the entries of ledgers. Every method is bound to one account.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Entry is one event of a ledger. Change is its change of the balance. Expired is the
// part of a refund that came back to expired lots.
type Entry struct {
	Kind     string         `json:"kind"`
	Change   domain.Credits `json:"change"`
	Expired  domain.Credits `json:"expired"`
	Balance  domain.Credits `json:"balance"`
	JobID    string         `json:"job_id"`
	JobTitle string         `json:"job_title"` // empty where the job never came
	Reason   string         `json:"reason"`
	At       time.Time      `json:"at"`
}

const ofAccountSQL = `
FROM readmodel.ledger_entries e
LEFT JOIN readmodel.jobs j
  ON j.id = e.job_id
 AND j.account_id = e.account_id
WHERE e.account_id = $1`

// The subquery walks the index alone, however far back the page is.
const ledgerEntriesSQL = `
SELECT e.kind, e.change, e.expired, e.balance, e.job_id, COALESCE(j.title, '') AS job_title, e.reason, e.at` + ofAccountSQL + `
  AND e.revision <= (
      SELECT revision
      FROM readmodel.ledger_entries
      WHERE account_id = $1
      ORDER BY revision DESC
      LIMIT 1
      OFFSET $3)
ORDER BY e.revision DESC
LIMIT $2`

// Entries gives a page of the account's ledger, the newest entry first.
func (q *Reads) Entries(ctx context.Context, accountID string, limit, offset int) ([]Entry, error) {
	return pgpool.List[Entry](ctx, q.db, "the ledger of "+accountID, ledgerEntriesSQL, accountID, limit, offset)
}

// behindSQL is the revision of the first entry at a moment or later; without one, that
// behind the ledger's end. Two clocks may differ by some seconds, and no entry may fall
// between two months. So it is the first such entry behind one of the latest earlier time,
// or before that, within a minute of the moment. OFFSET 0 keeps Postgres from walking
// through all revisions to find the least.
const behindSQL = `
COALESCE(
    LEAST(
        (
            SELECT revision
            FROM readmodel.ledger_entries
            WHERE account_id = $1
              AND at >= {moment}
              AND revision > COALESCE((
                  SELECT revision
                  FROM readmodel.ledger_entries
                  WHERE account_id = $1
                    AND at < {moment}
                  ORDER BY at DESC
                  LIMIT 1), -1)
            ORDER BY revision
            LIMIT 1),
        (
            SELECT MIN(revision)
            FROM (
                SELECT revision
                FROM readmodel.ledger_entries
                WHERE account_id = $1
                  AND at >= {moment}
                  AND at < {moment} + interval '1 minute'
                OFFSET 0) soon)),
    (SELECT MAX(revision) + 1 FROM readmodel.ledger_entries WHERE account_id = $1),
    0)`

// DayEnd is the balance at the end of a day (UTC).
type DayEnd struct {
	Day     time.Time      `json:"day"`
	Balance domain.Credits `json:"balance"`
}

var dayEndsSQL = `
SELECT day, COALESCE((
           SELECT balance
           FROM readmodel.ledger_entries
           WHERE account_id = $1
             AND revision < ` + behind("day + interval '24 hours'") + `
           ORDER BY revision DESC
           LIMIT 1), 0) AS balance
FROM generate_series($2::timestamptz, $2 + ($3::integer - 1) * interval '24 hours', interval '24 hours') AS day
WHERE (SELECT MAX(revision) FROM readmodel.ledger_entries WHERE account_id = $1) IS NOT NULL
ORDER BY day`

// DayEnds gives the balances at the end of so many days from a day on: those with which a
// statement up to there would close. An account without entries has none.
func (q *Reads) DayEnds(ctx context.Context, accountID string, from time.Time, days int) ([]DayEnd, error) {
	return pgpool.List[DayEnd](ctx, q.db, "the balances of "+accountID, dayEndsSQL, accountID, from, days)
}

func behind(moment string) string { return strings.ReplaceAll(behindSQL, "{moment}", moment) }

// A week of use is the least that tells of a pace, and months tell of no day.
const lastsSQL = `
SELECT $4::timestamptz + ($3::float8 / -SUM(change)::float8) * ($4::timestamptz - MIN(at)) AS lasts
FROM readmodel.ledger_entries
WHERE account_id = $1
  AND at >= $2
  AND kind IN ('debited', 'refunded')
HAVING MIN(at) < $4::timestamptz - interval '7 days'
   AND -SUM(change) * 4 > $3`

// Lasts says until when the available credits last at the pace of the last 14 days; zero
// where these tell of no day.
func (q *Reads) Lasts(ctx context.Context, accountID string, available domain.Credits, now time.Time) (at time.Time, err error) {
	at, _, err = pgpool.Find[time.Time](ctx, q.db, "the pace of "+accountID, lastsSQL, accountID, now.AddDate(0, 0, -14), available, now)
	return at, err
}

// Line is an entry with its details. Revision is its place in the ledger, from 0.
type Line struct {
	Entry

	Revision  uint64               `json:"revision"`
	Lots      readmodel.List[Part] `json:"lots"`
	Actor     string               `json:"actor"` // as the log has it: "key:<id>", "policy:<name>", …
	RequestID string               `json:"request_id"`
}

// Author is the actor as the account may know it: its keys and people, "operator", or "service".
// It never tells a checker, whose person older versions wrote down.
func (l Line) Author() string {
	kind, _, _ := strings.Cut(l.Actor, ":")
	switch {
	case kind == "operator": // the account may not know which one
		return kind
	case kind == "key", kind == "person" && l.Reason != job.FailUntestable:
		return l.Actor
	}
	return "service"
}

const linesSQL = `
SELECT e.revision, e.kind, e.change, e.expired, e.balance, e.job_id, e.reason, e.at, e.lots, e.actor, e.request_id,
       COALESCE(j.title, '') AS job_title` + ofAccountSQL

const linesBeforeSQL = linesSQL + `
  AND e.revision < $2
ORDER BY e.revision DESC
LIMIT $3`

const linesFromSQL = linesSQL + `
  AND e.revision >= $2
  AND e.revision < $3
ORDER BY e.revision
LIMIT $4`

// Before gives the entries before a revision, the newest first.
func (q *Reads) Before(ctx context.Context, accountID string, revision uint64, limit int) ([]Line, error) {
	return q.lines(ctx, linesBeforeSQL, accountID, int64(min(revision, Whole)), limit)
}

const lengthSQL = `
SELECT revision + 1
FROM readmodel.ledger_entries
WHERE account_id = $1
  AND at <= $2
ORDER BY at DESC, revision DESC
LIMIT 1`

// Length is how many events the account's ledger has, up to its newest entry at a moment
// or before.
func (q *Reads) Length(ctx context.Context, accountID string, at time.Time) (uint64, error) {
	length, _, err := pgpool.Find[uint64](ctx, q.db, "the length of the ledger of "+accountID, lengthSQL, accountID, at)
	return length, err
}

const refundsSQL = linesSQL + `
  AND e.job_id = ANY($2)
  AND e.kind = 'refunded'
  AND e.revision < $3
ORDER BY e.revision`

// Refunds gives the refunds of jobs that stand before a revision.
func (q *Reads) Refunds(ctx context.Context, accountID string, jobIDs []string, revision uint64) ([]Line, error) {
	return q.lines(ctx, refundsSQL, accountID, pq.Array(jobIDs), int64(min(revision, Whole)))
}

// Statement is a range of a ledger: the entries from one revision up to another, and the
// balances around them. Closing is Opening plus the changes.
type Statement struct {
	From    uint64         `json:"first"`  // a revision
	To      uint64         `json:"behind"` // not part of it
	Opening domain.Credits `json:"opening"`
	Closing domain.Credits `json:"closing"`
}

var statementSQL = `
WITH bounds AS MATERIALIZED (
    SELECT LEAST($4::bigint, ` + behind("$2") + `) AS first,
           LEAST($4::bigint, ` + behind("$3") + `) AS behind)
SELECT LEAST(first, behind) AS first, behind,
       COALESCE((
           SELECT balance FROM readmodel.ledger_entries
           WHERE account_id = $1 AND revision < LEAST(first, behind)
           ORDER BY revision DESC LIMIT 1), 0) AS opening,
       COALESCE((
           SELECT balance FROM readmodel.ledger_entries
           WHERE account_id = $1 AND revision < behind
           ORDER BY revision DESC LIMIT 1), 0) AS closing
FROM bounds`

// Whole is behind every revision of a ledger.
const Whole = math.MaxInt64

// Statement finds the entries from one moment up to another, of those that stand
// before a revision.
func (q *Reads) Statement(ctx context.Context, accountID string, from, to time.Time, revision uint64) (Statement, error) {
	return readmodel.Get[Statement](ctx, q.db, "a statement of "+accountID, statementSQL, accountID, from, to, int64(min(revision, Whole)))
}

// Lines gives the statement's entries from a revision on, the oldest first.
func (q *Reads) Lines(ctx context.Context, accountID string, s Statement, from uint64, limit int) ([]Line, error) {
	return q.lines(ctx, linesFromSQL, accountID, int64(from), int64(s.To), limit)
}

func (q *Reads) lines(ctx context.Context, query, accountID string, args ...any) ([]Line, error) {
	return pgpool.List[Line](ctx, q.db, "the ledger of "+accountID, query, append([]any{accountID}, args...)...)
}
