package announce

import (
	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/project"
	"humanqa/domain/subscription"
)

// Events about a whole account (decisions, "Account events"). A project whose list names
// such an event gets it, whichever project it is about.
var accountKinds = []Kind{
	kind(subscription.WebhookDisabled, webhookDisabled),
	where((*credits.Debited).BecameLow, kind(subscription.CreditsLow, creditsLow)),
	kind(subscription.SubmissionsRefused, func(_ subject, e *account.SubmissionsRefused) any { return RefusedOf(e) }),
}

type webhookDisabledData struct {
	AccountID   string `json:"accountId"`
	ProjectID   orNull `json:"projectId"`
	ProjectName string `json:"projectName"`
	DeliveryID  orNull `json:"deliveryId"` // the delivery that failed for good; null: a person disabled the webhook
	Reason      string `json:"reason"`
	DisabledAt  string `json:"disabledAt"`
	ProjectURL  string `json:"projectUrl"`
}

func webhookDisabled(s subject, e *project.WebhookDisabled) any {
	return webhookDisabledData{
		AccountID: s.AccountID, ProjectID: orNull(s.id), ProjectName: s.Title, DeliveryID: orNull(e.DeliveryID), Reason: e.Reason,
		DisabledAt: stamp(e.At), ProjectURL: s.baseURL + "/dashboard/projects/" + s.id,
	}
}

type creditsLowData struct {
	AccountID  string         `json:"accountId"`
	Available  domain.Credits `json:"available"`
	Below      domain.Credits `json:"below"`
	CreditsURL string         `json:"creditsUrl"`
}

func creditsLow(s subject, e *credits.Debited) any {
	return creditsLowData{AccountID: s.id, Available: e.BalanceAfter, Below: e.Limit(), CreditsURL: s.baseURL + "/dashboard/credits"}
}

// Refused is the payload of account.submissions_refused. GET /v1/refusals shows it, too.
type Refused struct {
	Since   string                 `json:"since"`
	Until   string                 `json:"until"`
	Tests   int                    `json:"tests"`
	Counts  []account.RefusedCount `json:"counts"`
	Samples []account.RefusedTest  `json:"samples"`
}

// RefusedOf shows refused tests.
func RefusedOf(e *account.SubmissionsRefused) Refused {
	out := Refused{Since: stamp(e.From), Until: stamp(e.To), Counts: e.Counts, Samples: append([]account.RefusedTest{}, e.Samples...)}
	for _, c := range e.Counts {
		out.Tests += c.Tests
	}
	return out
}
