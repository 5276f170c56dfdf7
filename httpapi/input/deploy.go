package input

import (
	"net/http"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
)

const (
	maxCommitSHA        = 100
	maxBranch           = 256
	maxEnvironment      = 100
	maxDeduplicationKey = 256
)

// Deploy reads the body of a deploy (decisions, "Deploy hook"): our own, or one as a
// platform sends it (platforms.go). ignored says why the call is no deploy to test; empty:
// it is one.
func Deploy(h http.Header, o wire.Object) (in command.Deploy, ignored string) {
	if d, known := platformDeploy(h, o); known {
		return d.command(o), d.ignored
	}
	in.Test.Submission = job.Submission{
		URL:         o.Optional("url", MaxURL),
		Feature:     strings.TrimSpace(o.Optional("feature", maxFeature)),
		Urgent:      o.OneOf("priority", wire.Normal, wire.Normal, wire.Urgent) == wire.Urgent,
		Commit:      word(o, "commitSha", maxCommitSHA),
		Branch:      word(o, "branch", maxBranch),
		Environment: word(o, "environment", maxEnvironment),
	}
	CheckTarget(o, "url", in.Test.URL, "")
	if in.Test.Commit != "" {
		in.Keys = append(in.Keys, "commit:"+strings.ToLower(in.Test.Commit))
	}
	if key := word(o, "deduplicationKey", maxDeduplicationKey); key != "" {
		in.Keys = append(in.Keys, "key:"+key)
	}
	return in, ""
}

func word(o wire.Object, name string, limit int) string {
	return strings.TrimSpace(o.Optional(name, limit))
}
