package httpapi

import (
	"context"
	"net/http"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/host"
	"humanqa/domain/job"
)

const (
	maxCommitSHA        = 100
	maxBranch           = 256
	maxEnvironment      = 100
	maxDeduplicationKey = 256
)

// deployedJob is the handle of a deploy's test: the one it made, or the one
// that an earlier deploy with the same key made.
type deployedJob struct {
	hostedJob
	Deduplicated bool `json:"deduplicated"`
}

// deployHook is POST /v1/hooks/deploy/:token. The token in the path is the
// credential (see hook).
func (a *API) deployHook(r *request) (answer, error) {
	var p problems
	r.idempotencyKey(&p)
	in := readDeploy(r.optionalObject(&p))
	if err := a.admitted(r, &p); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		// Within the command: a stored answer is repeated whatever the settings
		// are now.
		if err := a.deployedURL(ctx, r.caller, &in.Test); err != nil {
			return answer{}, err
		}
		out, err := a.commands.Deploy(ctx, cause, r.caller.projectID, in)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, out.Position)
		status := http.StatusCreated
		if out.Deduplicated {
			status = http.StatusOK
		}
		return reply(status, deployedJob{hostedJob: a.hostedJob(in.Test, out), Deduplicated: out.Deduplicated})
	})
}

// deployedURL falls back to the project's URL, which the account may no longer
// test since it was set.
func (a *API) deployedURL(ctx context.Context, c caller, test *command.HostedTest) error {
	if test.URL == "" {
		project, err := a.reads.Projects.Get(ctx, c.accountID, c.projectID)
		if err != nil {
			return err
		}
		var p problems
		if project.DefaultURL == nil {
			p.add("url", "is required: the project has no defaultUrl")
			return p.err()
		}
		test.URL = *project.DefaultURL
		object{problems: &p}.target("url", test.URL, "")
		if err := a.admit(ctx, c.accountID, c.sandbox, &p); err != nil {
			return err
		}
		if err := p.err(); err != nil {
			return err
		}
	}
	test.Host, test.HostedApp = host.Of(test.URL), a.hostedDomains.Hosts(test.URL)
	return nil
}

// readDeploy reads the body of a deploy (decisions, "Deploy hook").
func readDeploy(o object) command.Deploy {
	in := command.Deploy{Test: command.HostedTest{
		Submission: job.Submission{
			URL:     o.optional("url", maxURL),
			Feature: strings.TrimSpace(o.optional("feature", maxFeature)),
			Urgent:  o.oneOf("priority", normal, normal, urgent) == urgent,
		},
	}}
	o.target("url", in.Test.URL, "")
	word := func(name string, limit int) string { return strings.TrimSpace(o.optional(name, limit)) }
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
