// Package credits is the read model of balances and lots.
package credits

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps the sums of each ledger and the remainders of its lots.
var Projector = readmodel.New(readmodel.Spec{
	Name: "credits", Version: 2,
	Tables: []consumer.Table{
		{Name: "credit_accounts", DDL: creditAccountsDDL},
		{Name: "credit_lots", DDL: creditLotsDDL},
		{Name: "credit_limits", DDL: creditLimitsDDL},
	},
	Handles: domain.TypesOf(
		(*credits.Granted)(nil),
		(*credits.Debited)(nil),
		(*credits.Refunded)(nil),
		(*credits.LotExpired)(nil),
		(*credits.LowSet)(nil),
	),
	Apply: apply,
})

// granted = used + expired + the remainders of the lots; used is net of refunds.
const creditAccountsDDL = `
CREATE TABLE {schema}.credit_accounts (
    account_id text PRIMARY KEY,
    granted    bigint NOT NULL,
    used       bigint NOT NULL,
    expired    bigint NOT NULL
) WITH (fillfactor = 50);
`

const creditLotsDDL = `
CREATE TABLE {schema}.credit_lots (
    account_id text NOT NULL,
    lot_id     text NOT NULL,
    amount     bigint NOT NULL,
    remaining  bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount),
    expires_at timestamptz,
    PRIMARY KEY (account_id, lot_id)
) WITH (fillfactor = 50);
`

// An account that set no limit has no row.
const creditLimitsDDL = `
CREATE TABLE {schema}.credit_limits (
    account_id text PRIMARY KEY,
    low_below  bigint NOT NULL
);
`

// accountRow holds what a batch adds to a ledger's sums.
type accountRow struct {
	AccountID string         `json:"account_id"`
	Granted   domain.Credits `json:"granted"`
	Used      domain.Credits `json:"used"`
	Expired   domain.Credits `json:"expired"`
}

// lotRow is a lot that a batch grants, or, with an amount of zero, what the
// batch adds to the remainder of a lot that is there.
type lotRow struct {
	AccountID string         `json:"account_id"`
	LotID     string         `json:"lot_id"`
	Amount    domain.Credits `json:"amount"`
	Remaining domain.Credits `json:"remaining"`
	ExpiresAt *time.Time     `json:"expires_at"`
}

var addToCreditAccountsSQL = readmodel.Insert("credit_accounts") + `
ON CONFLICT (account_id) DO UPDATE
SET granted = was.granted + EXCLUDED.granted,
    used = was.used + EXCLUDED.used,
    expired = was.expired + EXCLUDED.expired`

// limitRow is the limit below which an account's credits are low.
type limitRow struct {
	AccountID string         `json:"account_id"`
	LowBelow  domain.Credits `json:"low_below"`
}

const addToCreditLotsSQL = `
UPDATE {schema}.credit_lots l
SET remaining = l.remaining + r.remaining
FROM json_populate_recordset(NULL::{schema}.credit_lots, $1) r
WHERE l.account_id = r.account_id
  AND l.lot_id = r.lot_id`

// apply adds the batch up per ledger and lot, so that a hot account costs one
// row however many jobs it paid for.
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	f := newFold()
	for _, r := range batch {
		f.fold(r.StreamID(), r.Event)
	}
	return readmodel.Run(ctx, tx, schema,
		readmodel.Write("add to the ledgers", addToCreditAccountsSQL, f.sums),
		readmodel.Append("credit_lots", f.granted),
		readmodel.Write("add to the lots", addToCreditLotsSQL, f.changed),
		readmodel.Upsert("credit_limits", slices.Collect(maps.Values(f.limits)), "account_id"),
	)
}

type lotKey struct{ accountID, lotID string }

// creditsFold is one batch on its way into the tables; the slices are in order
// of first appearance.
type creditsFold struct {
	accounts map[string]*accountRow
	sums     []*accountRow
	lots     map[lotKey]*lotRow
	granted  []*lotRow // new lots
	changed  []*lotRow // changes of older ones
	limits   map[string]*limitRow
}

func newFold() creditsFold {
	return creditsFold{accounts: map[string]*accountRow{}, lots: map[lotKey]*lotRow{}, limits: map[string]*limitRow{}}
}

func (f *creditsFold) fold(accountID string, e domain.Event) {
	sums := f.account(accountID)
	switch e := e.(type) {
	case *credits.Granted:
		sums.Granted += e.Amount
		lot := &lotRow{
			AccountID: accountID, LotID: e.LotID, Amount: e.Amount, Remaining: e.Amount, ExpiresAt: readmodel.OptionalMoment(e.ExpiresAt),
		}
		f.lots[lotKey{accountID, e.LotID}] = lot
		f.granted = append(f.granted, lot)
	case *credits.Debited:
		sums.Used += e.Amount
		for _, p := range e.Parts {
			f.lot(accountID, p.LotID).Remaining -= p.Amount
		}
	case *credits.Refunded:
		sums.Used -= e.Amount
		for _, p := range e.Parts {
			if p.Expired {
				sums.Expired += p.Amount
			} else {
				f.lot(accountID, p.LotID).Remaining += p.Amount
			}
		}
	case *credits.LotExpired:
		sums.Expired += e.Amount
		f.lot(accountID, e.LotID).Remaining -= e.Amount
	case *credits.LowSet:
		f.limits[accountID] = &limitRow{accountID, e.Below}
	}
}

func (f *creditsFold) account(id string) *accountRow {
	a := f.accounts[id]
	if a == nil {
		a = &accountRow{AccountID: id}
		f.accounts[id] = a
		f.sums = append(f.sums, a)
	}
	return a
}

func (f *creditsFold) lot(accountID, lotID string) *lotRow {
	key := lotKey{accountID, lotID}
	l := f.lots[key]
	if l == nil {
		l = &lotRow{AccountID: accountID, LotID: lotID}
		f.lots[key] = l
		f.changed = append(f.changed, l)
	}
	return l
}

// Reads reads balances.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Balance is an account's balance at a moment: Available = Total - Used. Total leaves out
// the remainder of an expired lot.
type Balance struct {
	Available domain.Credits
	Used      domain.Credits // net of refunds
	Total     domain.Credits
	Expiring  []ExpiringCredits // within ExpirySoon, soonest first
	LowBelow  domain.Credits    // the limit; 0: there is none
}

// ExpiringCredits is the rest of a lot.
type ExpiringCredits struct {
	Amount    domain.Credits
	ExpiresAt time.Time
}

// ExpirySoon is how far ahead a balance shows expiring lots (decisions,
// "Expiring credits").
const ExpirySoon = 30 * 24 * time.Hour

// One row per lot that can still be spent, the sum of the ledger's debits
// beside it: both from one snapshot. An account without such a lot has one row
// of nulls.
const balanceSQL = `
SELECT a.used, l.remaining, l.expires_at, c.low_below
FROM readmodel.credit_accounts a
LEFT JOIN readmodel.credit_limits c
  ON c.account_id = a.account_id
LEFT JOIN readmodel.credit_lots l
  ON l.account_id = a.account_id
 AND l.remaining > 0
 AND (l.expires_at IS NULL OR l.expires_at > $2)
WHERE a.account_id = $1
ORDER BY l.expires_at, l.lot_id`

// Balance adds up the spendable lots at that moment. It leaves out an expired lot, even
// if its expiry was not recorded yet.
func (q *Reads) Balance(ctx context.Context, accountID string, now time.Time) (Balance, error) {
	rows, err := pgpool.List[balanceRow](ctx, q.db, "the balance of "+accountID, balanceSQL, accountID, now)
	if err != nil {
		return Balance{}, err
	}
	return balanceOf(rows, now), nil
}

// balanceRow is a lot that can be spent, beside the ledger's debits.
type balanceRow struct {
	Used      domain.Credits  `json:"used"`
	Remaining *domain.Credits `json:"remaining"`
	ExpiresAt *time.Time      `json:"expires_at"`
	LowBelow  *domain.Credits `json:"low_below"`
}

func balanceOf(rows []balanceRow, now time.Time) (b Balance) {
	b.LowBelow = credits.DefaultLow
	for _, r := range rows {
		b.Used = r.Used
		if r.LowBelow != nil {
			b.LowBelow = *r.LowBelow
		}
		if r.Remaining == nil {
			continue
		}
		b.Available += *r.Remaining
		if r.ExpiresAt != nil && !r.ExpiresAt.After(now.Add(ExpirySoon)) {
			b.Expiring = append(b.Expiring, ExpiringCredits{Amount: *r.Remaining, ExpiresAt: *r.ExpiresAt})
		}
	}
	b.Total = b.Available + b.Used
	return b
}

// Past is an account's ledger after the folded events only. It is the same fold, without
// a table.
type Past struct {
	accountID string
	fold      creditsFold
	whole     bool // it began at a close
}

// NewPast is a ledger before its first event.
func NewPast(accountID string) *Past { return &Past{accountID: accountID, fold: newFold()} }

// Whole says that a close was among the events, so that no earlier events are needed.
func (p *Past) Whole() bool { return p.whole }

// Fold adds the ledger's next event. A close has all facts that a balance needs from
// earlier events, so a fold may begin there.
func (p *Past) Fold(e domain.Event) {
	if closed, ok := e.(*credits.Closed); ok {
		p.begin(closed)
		return
	}
	p.fold.fold(p.accountID, e)
}

func (p *Past) begin(e *credits.Closed) {
	p.fold, p.whole = newFold(), true
	sums := p.fold.account(p.accountID)
	sums.Granted, sums.Used, sums.Expired = e.Granted, e.Used, e.Expired
	for _, l := range e.Lots {
		lot := &lotRow{AccountID: p.accountID, LotID: l.LotID, Remaining: l.Left, ExpiresAt: readmodel.OptionalMoment(l.ExpiresAt)}
		p.fold.lots[lotKey{p.accountID, l.LotID}] = lot
		p.fold.granted = append(p.fold.granted, lot)
	}
	if e.LowBelow != nil {
		p.fold.limits[p.accountID] = &limitRow{p.accountID, *e.LowBelow}
	}
}

// Balance is the account's balance at a moment.
func (p *Past) Balance(now time.Time) Balance {
	f := p.fold
	rows := []balanceRow{{Used: f.account(p.accountID).Used}}
	if l := f.limits[p.accountID]; l != nil {
		rows[0].LowBelow = &l.LowBelow
	}
	slices.SortStableFunc(f.granted, func(a, b *lotRow) int { // as balanceSQL
		switch {
		case a.ExpiresAt == nil && b.ExpiresAt == nil:
			return strings.Compare(a.LotID, b.LotID)
		case a.ExpiresAt == nil:
			return 1
		case b.ExpiresAt == nil:
			return -1
		}
		return cmp.Or(a.ExpiresAt.Compare(*b.ExpiresAt), strings.Compare(a.LotID, b.LotID))
	})
	for _, lot := range f.granted {
		if lot.Remaining > 0 && (lot.ExpiresAt == nil || lot.ExpiresAt.After(now)) {
			rows = append(rows, balanceRow{
				Used: rows[0].Used, LowBelow: rows[0].LowBelow, Remaining: &lot.Remaining, ExpiresAt: lot.ExpiresAt,
			})
		}
	}
	return balanceOf(rows, now)
}
