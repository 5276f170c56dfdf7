package wire

import (
	"cmp"
	"strings"
)

// Hints are the next steps after a 400, by the field that is wrong. A message that names
// a closed list or a limit needs none.
var Hints = map[string]string{
	BodyPath:                  "send one JSON object; GET /docs shows it for every call",
	"url":                     "use the public address of the page, such as https://example.com/; what is behind a login needs credentials or accessInstructions",
	"chat.url":                "make an incoming webhook there, and send its whole address; the project's page Chat sends a test message",
	"webhookUrl":              "use a public https address; for a receiver on your own machine open a tunnel to it",
	"webhookSecret":           "leave it out to have one made",
	"subscribedWebhookEvents": "leave it out for every event, or send [] for none",
	"checklistItems":          "leave it out to have the checklist written",
	"jobs":                    "send 1 to 20 jobs; the rest goes into another request",
	"jobType":                 "GET /v1/pricing lists the job types",
	"fixedBugIds":             "latestFailures of GET /v1/projects/:id/history has the ids of what failed",
	"since":                   "write it as 2026-11-01 or as 2026-11-01T09:00:00Z",
	"after":                   "start again without a cursor",
	"Last-Event-ID":           "start again without a cursor",
	IdempotencyHeader:         "use something random, such as a UUID",
	ClaimTokenHeader:          "GET /v1/checker/claims gives your claim back, with its token",
}

// hint is the next step after the refusal: a slip that explains a missing field, or the
// hint of the first wrong field that has one.
func (p *Problems) hint() string {
	for _, slip := range p.Warnings(nil) {
		if strings.Contains(slip.Message, didYouMean) {
			return slip.Path + " " + slip.Message
		}
	}
	for _, d := range p.details {
		if hint := cmp.Or(p.hints[d.Path], Hints[d.Path]); hint != "" {
			return hint
		}
		name, _, _ := strings.Cut(d.Path[strings.LastIndexByte(d.Path, '.')+1:], "[")
		if hint := Hints[name]; hint != "" {
			return hint
		}
	}
	return ""
}
