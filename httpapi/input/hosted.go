package input

import (
	"net/http"
	"slices"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
)

const (
	maxFeature = 2000
	MinSecret  = 32
	MaxSecret  = 256
)

// HostedTest reads a hosted test.
func HostedTest(o wire.Object, h http.Header, l *Limits) (command.HostedTest, Target) {
	in, target := readHosted(o, l)
	in.Target, in.CommitStatus, in.Items = readTarget(o), CommitStatus(o, h), Checklist(o)
	if in.Type.Automatic() && len(in.Items) > 0 {
		o.Wrong("checklistItems", "cannot stand beside %s, which writes its own list", in.TypeEcho)
	}
	return in, target
}

// readHosted reads the fields that a hosted test and a session have in common. The target
// is not one of them: each slot has its own.
func readHosted(o wire.Object, l *Limits) (command.HostedTest, Target) {
	in := command.HostedTest{
		Submission: job.Submission{
			URL:     o.Required("url", MaxURL),
			Feature: strings.TrimSpace(o.Optional("feature", maxFeature)),
			Urgent:  o.OneOf("priority", wire.Normal, wire.Normal, wire.Urgent) == wire.Urgent,
			Source:  "hosted",
		},
		AccessInstructions: o.Optional("accessInstructions", maxAccessInstructions),
		Webhook: command.Webhook{
			URL:    o.Optional("webhookUrl", MaxURL),
			Secret: readWebhookSecret(o, "webhookSecret"),
			Events: readEventNames(o, "subscribedWebhookEvents"),
		},
	}
	in.Type, in.TypeEcho = readHostedType(o, "jobType")
	o.Check("webhookUrl", in.Webhook.URL, l.webhookURL)
	l.Place(&in)
	return in, CheckTarget(o.Problems, o.Path+"url", in.URL, in.Type)
}

// readHostedType reads one of the types of the hosted endpoints, in either
// spelling; both are empty when the type is to be detected.
func readHostedType(o wire.Object, name string) (t job.Type, echo string) {
	if _, ok := o.Given(name); !ok {
		return "", ""
	}
	t, echo = readJobType(o, name)
	if hosted := job.HostedTypes(); t != "" && !slices.Contains(hosted, t) {
		o.Wrong(name, "must be %s", wire.OneOfWords(wire.Words(hosted)))
	}
	return t, echo
}

// readWebhookSecret reads a client's own signing secret. A refusal does not show it.
func readWebhookSecret(o wire.Object, name string) string {
	v, ok := o.Given(name)
	if !ok {
		return ""
	}
	secret, ok := o.Text(name, v, MaxSecret)
	if ok && (len(secret) < MinSecret || !Printable(secret)) {
		o.Wrong(name, "must be %d to %d printable ASCII characters", MinSecret, MaxSecret)
	}
	return secret
}

// Printable says that the text is all visible ASCII and blanks.
func Printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || '~' < c })
}
