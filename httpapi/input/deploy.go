package input

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/identity"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/projections"
	"humanqa/projections/projects"
)

const (
	maxCommitSHA        = 100
	maxBranch           = 256
	maxEnvironment      = 100
	maxDeduplicationKey = 256
)

// DeployBody is the JSON of a deploy. GitHub sends it as a field of a form, unless its owner
// chooses otherwise.
func DeployBody(h http.Header, content []byte) []byte {
	kind, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if h.Get(githubEvent) == "" || kind != "application/x-www-form-urlencoded" {
		return content
	}
	form, _ := url.ParseQuery(string(content)) // what is no form has no payload
	return []byte(form.Get("payload"))
}

// deployFields are those of our own body.
var deployFields = []string{"url", "feature", "priority", "commitSha", "branch", "environment", "deduplicationKey"}

// Deploy reads the body of a deploy (decisions, "Deploy hook"): our own, or one as a
// platform sends it (platforms.go). ignored says why the call is no deploy to test; empty:
// it is one. A body that has none of our own fields is another program's message.
func Deploy(h http.Header, o wire.Object) (in command.Deploy, target Target, ignored string) {
	if d, known := platformDeploy(h, o); known {
		in, target = d.command(o)
		return in, target, d.ignored
	}
	if !o.IsEmpty() && !slices.ContainsFunc(deployFields, o.HasScalar) {
		return in, target, "the body is no deployment of a platform that is known, and has none of " + strings.Join(deployFields, ", ")
	}
	in.Test.Submission = job.Submission{
		URL:         o.Optional("url", MaxURL),
		Feature:     strings.TrimSpace(o.Optional("feature", maxFeature)),
		Urgent:      o.OneOf("priority", wire.Normal, wire.Normal, wire.Urgent) == wire.Urgent,
		Commit:      word(o, "commitSha", maxCommitSHA),
		Branch:      word(o, "branch", maxBranch),
		Environment: word(o, "environment", maxEnvironment),
	}
	target = CheckTarget(o.Problems, o.Path+"url", in.Test.URL, "")
	if in.Test.Commit != "" {
		in.Keys = append(in.Keys, "commit:"+strings.ToLower(in.Test.Commit))
	}
	if key := word(o, "deduplicationKey", maxDeduplicationKey); key != "" {
		in.Keys = append(in.Keys, "key:"+key)
	}
	return in, target, ""
}

func word(o wire.Object, name string, limit int) string {
	return strings.TrimSpace(o.Optional(name, limit))
}

// Place notes the site that a test looks at, and whether a platform of hosted apps serves it.
func (l *Limits) Place(test *command.HostedTest) {
	test.Host, test.HostedApp = identity.Site(test.URL), l.HostedDomains.Hosts(test.URL)
}

// OwnURL is the address that a deploy without one tests: the project's, else that of its
// first test. It is empty if there is neither.
func OwnURL(ctx context.Context, reads *projections.Reads, of projects.Project) (string, error) {
	if of.DefaultURL != nil {
		return *of.DefaultURL, nil
	}
	return reads.Jobs.FirstURL(ctx, of.AccountID, of.ID)
}

// OwnTarget has the test try the address of OwnURL.
func OwnTarget(
	ctx context.Context, p *wire.Problems, reads *projections.Reads, of projects.Project, test *command.HostedTest,
) (_ Target, err error) {
	if test.URL, err = OwnURL(ctx, reads, of); err == nil && test.URL == "" {
		p.Add("url", "is required: the project has no defaultUrl, and no test to take one from")
	}
	return CheckTarget(p, "url", test.URL, ""), err
}

// DeployTrial answers a dry run of a deploy.
type DeployTrial struct {
	DryRun          bool           `json:"dryRun"`
	WouldTest       bool           `json:"wouldTest"`
	Reason          *string        `json:"reason"`   // why it would not
	Platform        *string        `json:"platform"` // null: our own body
	URL             string         `json:"url"`
	CommitSHA       *string        `json:"commitSha"`
	JobID           *string        `json:"jobId"` // of the earlier call's test
	JobTypeCode     *string        `json:"jobTypeCode"`
	CreditsRequired domain.Credits `json:"creditsRequired"`
	Sufficient      bool           `json:"sufficient"`
}

// Trial tells what a deploy would do. ignored says why it is none to test.
func Trial(in command.Deploy, ignored string, would command.DeployTrial) DeployTrial {
	if would.LivingID != "" {
		ignored = "an earlier call led to this test, which lives or has a report"
	}
	return DeployTrial{
		DryRun: true, WouldTest: ignored == "", Reason: wire.OrNull(ignored), Platform: wire.OrNull(in.Platform),
		URL: in.Test.URL, CommitSHA: wire.OrNull(in.Test.Commit), JobID: wire.OrNull(would.LivingID),
		JobTypeCode: wire.OrNull(string(would.Type)), CreditsRequired: would.CreditsRequired,
		Sufficient: would.CreditsAvailable >= would.CreditsRequired,
	}
}
