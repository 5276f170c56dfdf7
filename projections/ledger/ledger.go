// Package ledger is the read model of the ledgers' entries.
package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/eventstore/consumer"
	"humanqa/projections/readmodel"
)

// Projector keeps every entry of each ledger, one row an event, with the
// balance that the event itself says.
type Projector struct{}

func (Projector) Name() string { return "ledger" }
func (Projector) Version() int { return 1 }

func (Projector) Tables() []consumer.Table {
	return []consumer.Table{{Name: "ledger_entries", DDL: ledgerEntriesDDL}}
}

const ledgerEntriesDDL = `
CREATE TABLE {schema}.ledger_entries (
    account_id text NOT NULL,
    revision   bigint NOT NULL,
    kind       text NOT NULL,
    change     bigint NOT NULL,
    expired    bigint NOT NULL,
    balance    bigint NOT NULL,
    job_id     text NOT NULL,
    reason     text NOT NULL,
    at         timestamptz NOT NULL,
    PRIMARY KEY (account_id, revision)
);
`

func (Projector) Handles() []string {
	var types []string
	for _, spec := range credits.Specs() {
		types = append(types, spec.New().EventType())
	}
	return types
}

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
}

var insertLedgerSQL = readmodel.Insert("ledger_entries")

// The kinds of entries.
const (
	Granted  = "granted"
	Debited  = "debited"
	Refunded = "refunded"
	Expired  = "expired"
)

// Apply writes a row an event.
func (Projector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	rows := make([]ledgerRow, 0, len(batch))
	for _, r := range batch {
		row := ledgerRow{AccountID: strings.TrimPrefix(r.Stream, domain.CreditsStreams), Revision: r.Revision, At: readmodel.Moment(r.Meta.Time)}
		switch e := r.Event.(type) {
		case *credits.Granted:
			row.Kind, row.Change, row.Balance, row.Reason = Granted, e.Amount, e.BalanceAfter, e.Reason
		case *credits.Debited:
			row.Kind, row.Change, row.Balance, row.JobID = Debited, -e.Amount, e.BalanceAfter, e.JobID
		case *credits.Refunded:
			row.Kind, row.Change, row.Expired = Refunded, e.Amount-e.Expired, e.Expired
			row.Balance, row.JobID, row.Reason = e.BalanceAfter, e.JobID, e.Reason
		case *credits.LotExpired:
			row.Kind, row.Change, row.Balance = Expired, -e.Amount, e.BalanceAfter
		}
		rows = append(rows, row)
	}
	if err := readmodel.Write(ctx, tx, schema, insertLedgerSQL, rows); err != nil {
		return fmt.Errorf("insert ledger entries: %w", err)
	}
	return nil
}

// Reads reads the entries of ledgers. Every method is bound to one account.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Entry is one event of a ledger. Change is what it did to the balance,
// Expired what of a refund came back to a lot whose time was over.
type Entry struct {
	Kind     string
	Change   domain.Credits
	Expired  domain.Credits
	Balance  domain.Credits
	JobID    string
	JobTitle string // empty where the job never came
	Reason   string
	At       time.Time
}

// Sum is what the entries add up to. The ledger is sound when Sum is the
// balance that its newest entry says.
type Sum struct {
	Entries int            `json:"entries"`
	Sum     domain.Credits `json:"sum"`
	Balance domain.Credits `json:"balance"`
}

const ledgerEntriesSQL = `
SELECT e.kind, e.change, e.expired, e.balance, e.job_id, COALESCE(j.title, '') AS job_title, e.reason, e.at
FROM readmodel.ledger_entries e
LEFT JOIN readmodel.jobs j
  ON j.id = e.job_id
 AND j.account_id = e.account_id
WHERE e.account_id = $1
ORDER BY e.revision DESC
LIMIT $2
OFFSET $3`

const ledgerSumSQL = `
SELECT COUNT(*) AS entries,
       COALESCE(SUM(change), 0) AS sum,
       COALESCE((
           SELECT balance
           FROM readmodel.ledger_entries
           WHERE account_id = $1
           ORDER BY revision DESC
           LIMIT 1), 0) AS balance
FROM readmodel.ledger_entries
WHERE account_id = $1`

// Entries gives a page of the account's ledger, the newest entry first.
func (q *Reads) Entries(ctx context.Context, accountID string, limit, offset int) ([]Entry, error) {
	var rows []struct {
		ledgerRow
		JobTitle string `json:"job_title"`
	}
	if err := q.db.SelectContext(ctx, &rows, ledgerEntriesSQL, accountID, limit, offset); err != nil {
		return nil, fmt.Errorf("read the ledger of %s: %w", accountID, err)
	}
	entries := make([]Entry, len(rows))
	for i, r := range rows {
		entries[i] = Entry{
			Kind: r.Kind, Change: r.Change, Expired: r.Expired, Balance: r.Balance,
			JobID: r.JobID, JobTitle: r.JobTitle, Reason: r.Reason, At: r.At.UTC(),
		}
	}
	return entries, nil
}

// Sum adds all entries of the account's ledger up.
func (q *Reads) Sum(ctx context.Context, accountID string) (s Sum, err error) {
	if err := q.db.GetContext(ctx, &s, ledgerSumSQL, accountID); err != nil {
		return s, fmt.Errorf("add the ledger of %s up: %w", accountID, err)
	}
	return s, nil
}
