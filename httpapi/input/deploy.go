package input

import (
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

// Deploy reads the body of a deploy (decisions, "Deploy hook").
func Deploy(o wire.Object) command.Deploy {
	in := command.Deploy{Test: command.HostedTest{
		Submission: job.Submission{
			URL:     o.Optional("url", MaxURL),
			Feature: strings.TrimSpace(o.Optional("feature", maxFeature)),
			Urgent:  o.OneOf("priority", wire.Normal, wire.Normal, wire.Urgent) == wire.Urgent,
		},
	}}
	CheckTarget(o, "url", in.Test.URL, "")
	word := func(name string, limit int) string { return strings.TrimSpace(o.Optional(name, limit)) }
	commit, key := word("commitSha", maxCommitSHA), word("deduplicationKey", maxDeduplicationKey)
	if commit != "" {
		in.Keys = append(in.Keys, "commit:"+strings.ToLower(commit))
	}
	if key != "" {
		in.Keys = append(in.Keys, "key:"+key)
	}
	in.Test.Remark = remark(word("branch", maxBranch), word("environment", maxEnvironment), commit)
	return in
}

// remark tells the checker what was deployed.
func remark(branch, environment, commit string) string {
	var parts []string
	for _, part := range [][2]string{{"branch", branch}, {"environment", environment}, {"commit", commit}} {
		if part[1] != "" {
			parts = append(parts, part[0]+" "+part[1])
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Deployed: " + strings.Join(parts, ", ") + "."
}
