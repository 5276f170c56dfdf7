package input

import (
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/retention"
	"humanqa/httpapi/wire"
	"humanqa/internal/guard"
)

func NewProject(o wire.Object, l *Limits) (command.CreateProject, Target) {
	in := command.CreateProject{
		Name:           o.Required("name", maxProjectName),
		Description:    o.Pointer("description", maxProjectDescription),
		DefaultURL:     o.Pointer("defaultUrl", MaxURL),
		DefaultJobType: o.Pointer("defaultJobType", wire.MaxWord),
		WebhookURL:     o.Optional("webhookUrl", MaxURL),
		Events:         readEventNames(o, "subscribedWebhookEvents"),
		Headers:        readHeaders(o),
	}
	if minutes := readSLAMinutes(o, "defaultSlaMinutes"); minutes != 0 {
		in.DefaultSLAMinutes = &minutes
	}
	o.Check("webhookUrl", in.WebhookURL, l.webhookURL)
	return in, checkDefaults(o, in.DefaultURL, in.DefaultJobType)
}

func (l *Limits) webhookURL(raw string) error { return guard.WebhookURL(raw, l.WebhookAllow) }

// checkDefaults checks the settings that jobs will inherit.
func checkDefaults(o wire.Object, defaultURL, jobType *string) (target Target) {
	if defaultURL != nil {
		target = CheckTarget(o.Problems, o.Path+"defaultUrl", *defaultURL, "")
	}
	if jobType != nil {
		if _, ok := job.ParseType(*jobType); !ok {
			o.Wrong("defaultJobType", "must be %s", wire.OneOfWords(wire.Words(job.Types())))
		}
	}
	return target
}

func ProjectUpdate(o wire.Object, l *Limits) (command.UpdateProject, Target) {
	o.Cleared("description", "defaultUrl", "defaultJobType", "defaultSlaMinutes", "loopAlertsSnoozedUntil", "questionMinutes",
		retention.EvidenceDays, retention.RecordingsDays, "deployHookSignature", "chat")
	in := command.UpdateProject{Headers: readHeaders(o), Changes: project.Changes{
		Description:       readPatchText(o, "description", maxProjectDescription),
		DefaultURL:        readPatchText(o, "defaultUrl", MaxURL),
		DefaultJobType:    readPatchText(o, "defaultJobType", wire.MaxWord),
		DefaultSLAMinutes: readPatch(o, "defaultSlaMinutes", func(wire.Value) int { return readSLAMinutes(o, "defaultSlaMinutes") }),
		Events:            readEventNames(o, "subscribedWebhookEvents"),

		LoopAlertsSnoozedUntil: readPatchTime(o, "loopAlertsSnoozedUntil"),
		QuestionMinutes:        readPatchInteger(o, "questionMinutes", 0, project.MaxQuestionMinutes),
		Keep:                   Retention(o),
	}}
	if _, there := o.Field("name"); there {
		in.Name = new(o.Required("name", maxProjectName))
	}
	if v, there := o.Given("webhookUrl"); there {
		if url, ok := o.Text("webhookUrl", v, MaxURL); ok {
			o.Check("webhookUrl", url, l.webhookURL)
			in.WebhookURL = &url
		}
	}
	o.NotNull("webhookUrl", `leave it out to keep the webhook, or send "" to remove it`)
	o.NotNull("subscribedWebhookEvents", "leave it out to keep the list, or send [] to stop deliveries")
	return in, checkDefaults(o, in.DefaultURL.Value, in.DefaultJobType.Value)
}

// readHeaders reads a change of the client's own headers: texts by name, null removes one, and
// null instead of the object removes all. The values are secrets: no error repeats one.
func readHeaders(o wire.Object) *command.Headers {
	const name = "webhookHeaders"
	v, there := o.Field(name)
	if !there {
		return nil
	}
	in := &command.Headers{Clear: v.IsNull(), Values: map[string]*string{}}
	child, ok := o.Child(name)
	if !ok {
		return in // null, or refused as no object
	}
	for _, header := range child.Unread() {
		if value, given := child.Given(header); given {
			text, ok := child.Text(header, value, project.MaxHeaderValue)
			if !ok {
				continue
			}
			in.Values[header] = &text
		} else {
			in.Values[header] = nil
		}
	}
	for _, wrong := range project.CheckHeaders(in.Values) {
		o.Wrong(wrong.Path, "%s", wrong.Message)
	}
	return in
}

// Retention reads how long evidence is kept; null keeps everything.
func Retention(o wire.Object) retention.Change {
	days := func(name string) retention.Setting {
		return readPatchInteger(o, name, retention.MinDays, retention.MaxDays)
	}
	return retention.Change{Evidence: days(retention.EvidenceDays), Recordings: days(retention.RecordingsDays)}
}
