package v1

import (
	"cmp"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/projections/credits"
)

type creditsBody struct {
	Available       domain.Credits    `json:"available"`
	Used            domain.Credits    `json:"used"`
	Total           domain.Credits    `json:"total"`
	ExpiringCredits []expiringCredits `json:"expiringCredits"`
	AsOf            *string           `json:"asOf,omitempty"`
}

type expiringCredits struct {
	Amount    domain.Credits `json:"amount"`
	ExpiresAt wire.Timestamp `json:"expiresAt"`
}

// getCredits is GET /v1/credits, at the account's time: a sandbox's lots expire
// by its own clock.
func (a *Handlers) getCredits(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.Err(), err); err != nil {
		return wire.Answer{}, err
	}
	b, err := a.balanceThen(r, at)
	expiring := wire.List(b.Expiring, func(e credits.ExpiringCredits) expiringCredits {
		return expiringCredits{Amount: e.Amount, ExpiresAt: wire.Timestamp(e.ExpiresAt)}
	})
	return wire.ReplyUnless(err, http.StatusOK, creditsBody{
		Available: b.Available, Used: b.Used, Total: b.Total, ExpiringCredits: expiring, AsOf: at.then(),
	})
}

// balanceThen is the balance at the moment of ?asOf=.
func (a *Handlers) balanceThen(r *wire.Request, at *asked) (credits.Balance, error) {
	if at != nil {
		return a.past.Balance(r.Context(), r.Caller.AccountID, at.Until)
	}
	now, err := a.accountTime(r.Context(), r)
	if err != nil {
		return credits.Balance{}, err
	}
	return a.Reads.Credits.Balance(r.Context(), r.Caller.AccountID, now)
}

type pricingBody struct {
	Prices []price `json:"prices"`
}

type price struct {
	JobType     string         `json:"jobType"`
	JobTypeCode job.Type       `json:"jobTypeCode"`
	Normal      domain.Credits `json:"normal"`
	Urgent      domain.Credits `json:"urgent"`
}

// getPricing is GET /v1/pricing: credits for one job, or for one slot of a
// session.
func (a *Handlers) getPricing(*wire.Request) (wire.Answer, error) {
	return wire.Reply(http.StatusOK, pricingBody{wire.List(job.Types(), func(t job.Type) price {
		return price{JobType: t.Title(), JobTypeCode: t, Normal: t.Price(false), Urgent: t.Price(true)}
	})})
}
