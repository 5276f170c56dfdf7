package words

import (
	"humanqa/httpapi/ui"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// WebhookState is the state of a webhook as pages show it.
func WebhookState(p projects.Project, all map[string]webhooks.Health) ui.State {
	h, known := all[p.ID]
	switch {
	case p.WebhookURL == "":
		return ui.State{}
	case p.WebhookDisabled || known && h.Status() == webhooks.HealthDisabled:
		return ui.NewState("Disabled", "fail", "alert")
	case known && h.Status() == webhooks.HealthFailing:
		return ui.NewState("Failing", "warn", "alert")
	}
	return ui.NewState("Works", "pass", "check")
}
