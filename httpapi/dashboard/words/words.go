// Package words puts events and states into the words of the dashboard.
package words

import (
	"cmp"
	"strings"
	"time"

	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/httpapi/ui"
	"humanqa/projections/events"
	"humanqa/projections/history"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

// Notice is something that went wrong while the account's people were away.
type Notice struct {
	ID, Kind     string
	At           time.Time
	Text, Detail string
	Href         string
}

// NoticeOf puts an event into words.
func NoticeOf(e events.AccountEvent) Notice {
	id := e.Recorded.StreamID()
	n := Notice{ID: e.Recorded.ID.String(), Kind: e.Recorded.Type, At: e.Recorded.Meta.Time}
	switch one := e.Recorded.Event.(type) {
	case *job.SLAMissed:
		n.Text, n.Detail, n.Href = "Not done in time: "+e.About.Title, "It is back in the queue.", "/dashboard/jobs/"+id
		if !one.Requeued {
			n.Detail = "It was the third missed time limit. The test has ended."
		}
	case *job.Failed:
		n.Text, n.Detail, n.Href = "Could not be tested: "+e.About.Title, ui.Credits(one.Refund)+" refunded.", "/dashboard/jobs/"+id
	case *loop.Ended:
		n.Text, n.Detail, n.Href = "The loop of "+one.Skill+" in "+one.ProjectName+" ended",
			ui.LoopState(one.FinalStatus).Word+" after "+ui.Count(one.Iterations, "round")+".", "/dashboard/loops/"+one.SessionID
	case *project.WebhookDisabled:
		n.Text, n.Detail, n.Href = "The webhook of "+e.About.Title+" was disabled", one.Reason, "/dashboard/projects/"+id+"#webhook"
	case *credits.Debited:
		n.Text, n.Detail, n.Href = "Low credits", ui.Credits(one.BalanceAfter)+" left.", "/dashboard/credits"
	}
	return n
}

// ByKind puts notices of one kind together, the kind with the newest first.
func ByKind(list []Notice) (kinds [][]Notice) {
	at := map[string]int{}
	for _, n := range list {
		i, known := at[n.Kind]
		if !known {
			i, at[n.Kind] = len(kinds), len(kinds)
			kinds = append(kinds, nil)
		}
		kinds[i] = append(kinds[i], n)
	}
	return kinds
}

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

// ProjectNames are the projects' names by their ids.
func ProjectNames(list []projects.Project) map[string]string {
	names := make(map[string]string, len(list))
	for _, p := range list {
		names[p.ID] = p.Name
	}
	return names
}

// Failing gives the descriptions of the items with these keys. An item that is not in the
// project's list of open failures is named by its key.
func Failing(keys []string, open []history.OpenFailure) (items []string) {
	called := map[string]string{}
	for _, f := range open {
		called[f.Key] = f.Description
	}
	for _, key := range keys {
		items = append(items, cmp.Or(called[key], strings.ReplaceAll(key, "-", " ")))
	}
	return items
}
