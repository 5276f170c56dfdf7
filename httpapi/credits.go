package httpapi

import (
	"cmp"
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
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
	ExpiresAt timestamp      `json:"expiresAt"`
}

// getCredits is GET /v1/credits, at the account's time: a sandbox's lots expire
// by its own clock.
func (a *API) getCredits(r *request) (answer, error) {
	var p problems
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.err(), err); err != nil {
		return answer{}, err
	}
	b, err := a.balanceThen(r, at)
	if err != nil {
		return answer{}, err
	}
	out := creditsBody{Available: b.Available, Used: b.Used, Total: b.Total, ExpiringCredits: []expiringCredits{}, AsOf: at.then()}
	for _, e := range b.Expiring {
		out.ExpiringCredits = append(out.ExpiringCredits, expiringCredits{Amount: e.Amount, ExpiresAt: timestamp(e.ExpiresAt)})
	}
	return reply(http.StatusOK, out)
}

// balanceThen is the balance, as ?asOf= asks for it.
func (a *API) balanceThen(r *request, at *asked) (credits.Balance, error) {
	if at != nil {
		return a.past.Balance(r.Context(), r.caller.accountID, at.Until)
	}
	now, err := a.accountTime(r.Context(), r)
	if err != nil {
		return credits.Balance{}, err
	}
	return a.reads.Credits.Balance(r.Context(), r.caller.accountID, now)
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
func (a *API) getPricing(*request) (answer, error) {
	var out pricingBody
	for _, t := range job.Types() {
		out.Prices = append(out.Prices, price{
			JobType: t.Title(), JobTypeCode: t,
			Normal: command.Price(t, false), Urgent: command.Price(t, true),
		})
	}
	return reply(http.StatusOK, out)
}
