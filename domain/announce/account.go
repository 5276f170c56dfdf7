package announce

import (
	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/project"
	"humanqa/domain/subscription"
)

// Events about a whole account (decisions, "Account events"). A project whose list names
// such an event gets it, whichever project it is about.
var accountKinds = []Kind{
	kind(subscription.WebhookDisabled, webhookDisabled),
	where((*credits.Debited).BecameLow, kind(subscription.CreditsLow, creditsLow)),
}

type webhookDisabledData struct {
	AccountID   string    `json:"accountId"`
	ProjectID   projectID `json:"projectId"`
	ProjectName string    `json:"projectName"`
	DeliveryID  *string   `json:"deliveryId"` // the delivery that failed for good; null: a person disabled the webhook
	Reason      string    `json:"reason"`
	DisabledAt  string    `json:"disabledAt"`
	ProjectURL  string    `json:"projectUrl"`
}

func webhookDisabled(s subject, e *project.WebhookDisabled) any {
	d := webhookDisabledData{
		AccountID: s.AccountID, ProjectID: projectID(s.id), ProjectName: s.Title, Reason: e.Reason,
		DisabledAt: stamp(e.At), ProjectURL: s.baseURL + "/dashboard/projects/" + s.id,
	}
	if e.DeliveryID != "" {
		d.DeliveryID = &e.DeliveryID
	}
	return d
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
