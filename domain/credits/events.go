// Package credits is the ledger of one account: lots granted, debits for jobs,
// refunds to the lots the money came from, and lots that expire. Every event
// carries the balance after it, so that a stream proves itself. Everything
// here is pure; time and ids come in with the command.
package credits

import (
	"time"

	"humanqa/domain"
)

// Part is an amount taken from, or given back to, one lot. Expired, only in a
// refund, says that the lot had expired by then: the amount is lost.
type Part struct {
	LotID   string         `json:"lotId"`
	Amount  domain.Credits `json:"amount"`
	Expired bool           `json:"expired,omitempty"`
}

// Granted adds a lot. ExpiresAt nil means never.
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
	// AskedAt is when the command that charges was first asked for; absent if
	// nobody knows. Every repeat of it says the same.
	AskedAt time.Time `json:"askedAt,omitzero"`
	// LowBelow is the limit in force (LowSet); absent: DefaultLow.
	LowBelow *domain.Credits `json:"lowBelow,omitempty"`
}

// Prelude implements domain.Prelude: the job follows.
func (*Debited) Prelude() {}

// LowSet says below how many credits the account wants to hear of it; 0: never.
type LowSet struct {
	Below        domain.Credits `json:"below"`
	BalanceAfter domain.Credits `json:"balanceAfter"`
}

// Refunded gives a debit back, whole and once, to the lots it came from. What
// returns to a lot that expired in the meantime is lost to the account at
// once: BalanceAfter leaves it out and Expired says how much it was.
type Refunded struct {
	JobID        string         `json:"jobId"`
	Amount       domain.Credits `json:"amount"`
	Parts        []Part         `json:"parts"`
	Expired      domain.Credits `json:"expired,omitempty"`
	Reason       string         `json:"reason"`
	BalanceAfter domain.Credits `json:"balanceAfter"`
}

// LotExpired takes what was left in a lot out of the account.
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
	return []domain.EventSpec{
		{New: func() domain.Event { return new(Granted) }},
		{New: func() domain.Event { return new(Debited) }},
		{New: func() domain.Event { return new(Refunded) }},
		{New: func() domain.Event { return new(LotExpired) }},
		{New: func() domain.Event { return new(LowSet) }},
		{New: func() domain.Event { return new(Closed) }},
	}
}
