package input

import (
	"net/http"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
)

// Submit reads the body of a submission (specification, "POST /v1/jobs").
func Submit(o wire.Object) (command.SubmitJob, Target) {
	in := command.SubmitJob{
		Submission: job.Submission{
			URL:         o.Required("url", MaxURL),
			Title:       o.Required("title", maxTitle),
			Description: o.Required("description", maxDescription),
			Urgent:      o.OneOf("priority", wire.Normal, wire.Normal, wire.Urgent) == wire.Urgent,
			ProjectID:   o.ID("projectId"),
			SLAMinutes:  readSLAMinutes(o, "slaMinutes"),
		},
		AccessInstructions: o.Optional("accessInstructions", maxAccessInstructions),
	}
	in.Target, in.Items, in.Credentials = readTarget(o), Checklist(o), readCredentials(o)
	in.Type, in.TypeEcho = readJobType(o, "jobType")
	in.Wait = o.OneOf("generateChecklist", "async", "sync", "async") == "sync"
	return in, CheckTarget(o.Problems, o.Path+"url", in.URL, in.Type)
}

func readTarget(o wire.Object) job.Target {
	text := func(name string) string { return strings.TrimSpace(o.Optional(name, maxTarget)) }
	return job.Target{
		Device: text("targetDevice"), OS: text("targetOS"), Browser: text("targetBrowser"),
		ScreenSize: text("targetScreenSize"), Network: text("targetNetwork"),
	}
}

// Checklist reads the items of a client's own checklist.
func Checklist(o wire.Object) []command.NewItem {
	var items []command.NewItem
	for _, i := range o.Objects("checklistItems", maxItems) {
		items = append(items, command.NewItem{
			Key:             strings.TrimSpace(i.Optional("key", maxItemKey)),
			Description:     i.Required("description", maxItemText),
			ExpectedOutcome: i.Optional("expectedOutcome", maxItemText),
			Severity:        readSeverity(i, job.Major),
		})
	}
	return items
}

func readCredentials(o wire.Object) *command.Credentials {
	c, ok := o.Child("credentials")
	if !ok {
		return nil
	}
	in := command.Credentials{
		Username: c.Optional("username", maxCredential),
		Password: c.Optional("password", maxCredential),
		Notes:    c.Optional("notes", maxCredentialNotes),
	}
	if in == (command.Credentials{}) {
		return nil
	}
	return &in
}

// maxBulkJobs is how many jobs one request may submit (specification,
// "Limits").
const maxBulkJobs = 20

// Bulk reads the jobs of a batch. Its commit status stands in the first of them.
func Bulk(o wire.Object, h http.Header) (submits []command.SubmitJob, targets []Target) {
	const name = "jobs"
	values, given := o.List(name, maxBulkJobs)
	if !o.Broken() && (!given || len(values) == 0) {
		o.Wrong(name, "must have 1 to %d entries", maxBulkJobs) // unless something else is wrong with it
	}
	batch := strings.TrimSpace(o.Optional("name", maxTitle))
	for _, one := range o.Objects(name, maxBulkJobs) {
		in, target := Submit(one)
		in.BatchName = batch
		submits, targets = append(submits, in), append(targets, target)
	}
	if status := CommitStatus(o, h); len(submits) > 0 {
		submits[0].CommitStatus = status
	}
	return submits, targets
}
