package httpapi

import (
	"net/http"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

type creditsBody struct {
	Available       domain.Credits    `json:"available"`
	Used            domain.Credits    `json:"used"`
	Total           domain.Credits    `json:"total"`
	ExpiringCredits []expiringCredits `json:"expiringCredits"`
}

type expiringCredits struct {
	Amount    domain.Credits `json:"amount"`
	ExpiresAt timestamp      `json:"expiresAt"`
}

// getCredits is GET /v1/credits, at the account's time: a sandbox's lots expire
// by its own clock.
func (a *API) getCredits(r *request) (answer, error) {
	now, err := a.commands.AccountTime(r.Context(), command.Cause{AccountID: r.caller.accountID, Sandbox: r.caller.sandbox})
	if err != nil {
		return answer{}, err
	}
	b, err := a.reads.Credits.Balance(r.Context(), r.caller.accountID, now)
	if err != nil {
		return answer{}, err
	}
	out := creditsBody{Available: b.Available, Used: b.Used, Total: b.Total, ExpiringCredits: []expiringCredits{}}
	for _, e := range b.Expiring {
		out.ExpiringCredits = append(out.ExpiringCredits, expiringCredits{Amount: e.Amount, ExpiresAt: timestamp(e.ExpiresAt)})
	}
	return reply(http.StatusOK, out)
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
