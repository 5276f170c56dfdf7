// Package credits is the ledger of one account: lots granted, debits for jobs, refunds
// to the lots of the debit, and lots that expire. Every event carries the balance after
// it, so that a stream proves itself. Everything here is pure: time and ids come in
// with the command.
package credits

import (
	"time"

	"humanqa/domain"
)

// Part is an amount taken from one lot, or given back to it. Expired occurs only in a
// refund: the lot had expired by then, and the amount is lost.
type Part struct {
	LotID   string         `json:"lotId"`
	Amount  domain.Credits `json:"amount"`
	Expired bool           `json:"expired,omitempty"`
}

// Granted adds a lot of credits. A lot without ExpiresAt never expires.
type Granted struct {
	LotID        string         `json:"lotId"`
	Amount       domain.Credits `json:"amount"`
	ExpiresAt    *time.Time     `json:"expiresAt,omitempty"`
	Reason       string         `json:"reason,omitempty"`
	BalanceAfter domain.Credits `json:"balanceAfter"`
}

// Debited charges one job; a job has at most one debit. The soonest-expiring
// lots pay first.
type Debited struct {
	JobID        string         `json:"jobId"`
	Amount       domain.Credits `json:"amount"`
	Parts        []Part         `json:"parts"`
	BalanceAfter domain.Credits `json:"balanceAfter"`
	// AskedAt is the time of the first request for this charge; absent if it is
	// unknown. It is equal for every repeat.
	AskedAt time.Time `json:"askedAt,omitzero"`
	// LowBelow is the limit in force (LowSet); absent: DefaultLow.
	LowBelow *domain.Credits `json:"lowBelow,omitempty"`
}

// MoreFollows implements domain.MoreFollows: the job follows.
func (*Debited) MoreFollows() {}

// LowSet sets the limit below which the credits count as low; 0 turns the notice off.
type LowSet struct {
	Below        domain.Credits `json:"below"`
	BalanceAfter domain.Credits `json:"balanceAfter"`
}

// Refunded gives a debit back, whole and once, to its lots. The part for a lot that has
// expired is lost to the account at once. BalanceAfter leaves that part out, and
// Expired is its amount.
type Refunded struct {
	JobID        string         `json:"jobId"`
	Amount       domain.Credits `json:"amount"`
	Parts        []Part         `json:"parts"`
	Expired      domain.Credits `json:"expired,omitempty"`
	Reason       string         `json:"reason"`
	BalanceAfter domain.Credits `json:"balanceAfter"`
}

// LotExpired takes the rest of a lot out of the account.
type LotExpired struct {
	LotID        string         `json:"lotId"`
	Amount       domain.Credits `json:"amount"`
	BalanceAfter domain.Credits `json:"balanceAfter"`
}

func (*Granted) EventType() string    { return "credits.granted" }
func (*Debited) EventType() string    { return "credits.debited" }
func (*Refunded) EventType() string   { return "credits.refunded" }
func (*LotExpired) EventType() string { return "credits.lot_expired" }
func (*LowSet) EventType() string     { return "credits.low_set" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return append(domain.Specs(&Granted{}, &Debited{}, &Refunded{}, &LotExpired{}, &LowSet{}), domain.Second(&Closed{})...)
}
