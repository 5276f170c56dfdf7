package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/host"
	"humanqa/domain/job"
	"humanqa/projections/history"
)

// The headers by which an agent says that its test is a step of a loop
// (decisions, "Loops").
const (
	skillHeader         = "X-Agent-Skill"
	iterationHeader     = "X-Agent-Iteration"
	maxIterationsHeader = "X-Agent-Max-Iterations"
)

const (
	maxFeature      = 2000
	maxSkill        = 100
	maxIteration    = 1_000_000
	maxFixes        = 50 // in each list
	minSecret       = 32
	maxSecret       = 256
	highestLoopCap  = 1000
	lowestIteration = 1
)

// hostedJob is the handle of a hosted test. creditsCharged always equals
// creditsDeducted.
type hostedJob struct {
	JobID                      string         `json:"jobId"`
	ProjectID                  string         `json:"projectId"`
	Status                     job.Status     `json:"status"`
	EstimatedCompletionMinutes int            `json:"estimatedCompletionMinutes"`
	CreditsDeducted            domain.Credits `json:"creditsDeducted"`
	CreditsCharged             domain.Credits `json:"creditsCharged"`
	CreditsRemaining           domain.Credits `json:"creditsRemaining"`
	ChecklistItemCount         int            `json:"checklistItemCount"`
	JobType                    string         `json:"jobType"`
	JobTypeCode                job.Type       `json:"jobTypeCode"`
	IsHostedApp                bool           `json:"isHostedApp"`
	RegressionItemsIncluded    int            `json:"regressionItemsIncluded"`
	LoopSessionID              string         `json:"loopSessionId,omitempty"` // of an agent's test
	StatusURL                  string         `json:"statusUrl"`
	ReportURL                  string         `json:"reportUrl"`
	DashboardReportURL         string         `json:"dashboardReportUrl"`
}

func (a *API) hostedJob(in command.HostedTest, out command.HostedJob) hostedJob {
	return hostedJob{
		JobID: out.JobID, ProjectID: out.ProjectID, Status: out.Status,
		EstimatedCompletionMinutes: out.EstimatedMinutes,
		CreditsDeducted:            out.CreditsDeducted, CreditsCharged: out.CreditsDeducted,
		CreditsRemaining:   out.CreditsRemaining,
		ChecklistItemCount: out.ChecklistItemCount,
		JobType:            out.TypeEcho, JobTypeCode: out.Type,
		IsHostedApp: in.HostedApp, RegressionItemsIncluded: out.RegressionItems,
		LoopSessionID: out.LoopSessionID,
		StatusURL:     a.statusURL(out.JobID), ReportURL: a.baseURL + "/v1/jobs/" + out.JobID + "/report",
		DashboardReportURL: announce.ReportPage(a.baseURL, out.JobID),
	}
}

func (a *API) statusURL(jobID string) string { return a.baseURL + "/v1/hosted/status/" + jobID }

// testHosted is POST /v1/hosted/test.
func (a *API) testHosted(r *request) (answer, error) {
	var p problems
	r.idempotencyKey(&p)
	o := r.object(&p)
	in := a.readHostedTest(r, o)
	in.Loop = r.loopStep(&p)
	if err := a.admitted(r, &p); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		out, err := a.commands.TestHosted(ctx, cause, in)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, out.Position)
		a.noteUnused(ctx, r, in.Webhook, out.ProjectID)
		return reply(http.StatusCreated, a.hostedJob(in, out))
	})
}

// readHostedTest reads a hosted test.
func (a *API) readHostedTest(r *request, o object) command.HostedTest {
	in := a.readHosted(r, o)
	in.Target = readTarget(o)
	return in
}

// readHosted reads what a hosted test and a session have in common: not the
// target, which each slot has of its own. A project-bound key's tests go to its
// project, whatever their host.
func (a *API) readHosted(r *request, o object) command.HostedTest {
	in := command.HostedTest{
		Submission: job.Submission{
			URL:       o.required("url", maxURL),
			Feature:   strings.TrimSpace(o.optional("feature", maxFeature)),
			Urgent:    o.oneOf("priority", normal, normal, urgent) == urgent,
			ProjectID: r.caller.projectID,
			Source:    "hosted",
		},
		AccessInstructions: o.optional("accessInstructions", maxAccessInstructions),
		Webhook: command.Webhook{
			URL:    o.optional("webhookUrl", maxURL),
			Secret: o.webhookSecret("webhookSecret"),
			Events: o.eventNames("subscribedWebhookEvents"),
		},
	}
	in.Type, in.TypeEcho = o.hostedType("jobType")
	o.target("url", in.URL, in.Type)
	o.check("webhookUrl", in.Webhook.URL, a.webhookURL)
	in.Host, in.HostedApp = host.Of(in.URL), a.hostedDomains.Hosts(in.URL)
	return in
}

// noteUnused warns of a webhook's settings that lead to no delivery: the project has no
// URL for them. The test stands, whatever becomes of the warning.
func (a *API) noteUnused(ctx context.Context, r *request, in command.Webhook, projectID string) {
	if in.URL != "" || in.Secret == "" && in.Events == nil {
		return
	}
	p, err := a.reads.Projects.Get(ctx, r.caller.accountID, projectID)
	if err != nil {
		r.log.WithError(err).Warn("answered without a look at the project's webhook")
		return
	}
	if p.WebhookURL != "" {
		return
	}
	if in.Secret != "" {
		r.unused("webhookSecret")
	}
	if in.Events != nil {
		r.unused("subscribedWebhookEvents")
	}
}

// hostedType reads one of the five types of the hosted endpoints, in either
// spelling; both are empty when the type is to be detected.
func (o object) hostedType(name string) (t job.Type, echo string) {
	if _, ok := o.given(name); !ok {
		return "", ""
	}
	t, echo = o.jobType(name)
	if five := job.Types()[:5]; t != "" && !slices.Contains(five, t) {
		o.wrong(name, "must be %s", oneOfWords(words(five)))
	}
	return t, echo
}

// webhookSecret reads a client's own signing secret. What is wrong with it is
// said without showing it.
func (o object) webhookSecret(name string) string {
	raw, ok := o.given(name)
	if !ok {
		return ""
	}
	secret, ok := o.text(name, raw, maxSecret)
	if ok && (len(secret) < minSecret || !printable(secret)) {
		o.wrong(name, "must be %d to %d printable ASCII characters", minSecret, maxSecret)
	}
	return secret
}

// printable says that the text is all visible ASCII and blanks.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || '~' < c })
}

// loopStep reads what an agent says of itself; nil when it says nothing.
func (r *request) loopStep(p *problems) *command.LoopStep {
	skills, iterations := r.Header.Values(skillHeader), r.Header.Values(iterationHeader)
	if len(skills) == 0 && len(iterations) == 0 {
		return nil
	}
	step := &command.LoopStep{Skill: strings.TrimSpace(r.Header.Get(skillHeader))}
	switch {
	case len(skills) == 0:
		p.add(skillHeader, "is required with %s", iterationHeader)
	case step.Skill == "" || len(step.Skill) > maxSkill || !printable(step.Skill):
		p.add(skillHeader, "must be 1 to %d printable ASCII characters", maxSkill)
	}
	if len(iterations) == 0 {
		p.add(iterationHeader, "is required with %s", skillHeader)
	} else {
		step.Iteration = r.wholeHeader(p, iterationHeader, lowestIteration, maxIteration)
	}
	if len(r.Header.Values(maxIterationsHeader)) > 0 {
		step.MaxIterations = r.wholeHeader(p, maxIterationsHeader, lowestIteration, highestLoopCap)
	}
	return step
}

func (r *request) wholeHeader(p *problems, name string, low, high int) int {
	n, err := strconv.Atoi(strings.TrimSpace(r.Header.Get(name)))
	if err != nil || n < low || n > high {
		p.add(name, "must be a whole number from %d to %d", low, high)
		return 0
	}
	return n
}

type preparedBody struct {
	Message         string   `json:"message"`
	RegressionItems int      `json:"regressionItems"`
	Descriptions    []string `json:"descriptions"`
	ProjectID       string   `json:"projectId"`
}

// prepareNext is POST /v1/hosted/prepare-next.
func (a *API) prepareNext(r *request) (answer, error) {
	var p problems
	r.idempotencyKey(&p)
	o := r.object(&p)
	projectID := o.requiredID("projectId")
	bugs, fixes := readFixes(o)
	if err := p.err(); err != nil {
		return answer{}, err
	}
	if err := a.mayUseProject(r.Context(), r.caller, projectID); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		// Within the command: a stored answer is repeated whatever failed since.
		named, err := a.failedInLastTest(ctx, cause.AccountID, projectID, bugs)
		if err != nil {
			return answer{}, err
		}
		out, err := a.commands.PrepareNext(ctx, cause, projectID, append(named, fixes...))
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, out.Position)
		n := len(out.Descriptions)
		return reply(http.StatusOK, preparedBody{
			Message:         fmt.Sprintf("%d %s will be verified by the project's next test", n, plural(n, "fix", "fixes")),
			RegressionItems: n, Descriptions: out.Descriptions, ProjectID: projectID,
		})
	})
}

// readFixes reads the two lists; one of them must name something.
func readFixes(o object) (bugs []string, fixes []command.PreparedFix) {
	const ids, texts = "fixedBugIds", "fixedDescriptions"
	before := len(o.problems.details)
	for i, s := range o.texts(ids) {
		if !idPattern.MatchString(s) {
			o.wrong(fmt.Sprintf("%s[%d]", ids, i), "must be an id")
		}
		bugs = append(bugs, s)
	}
	for i, s := range o.texts(texts) {
		if strings.TrimSpace(s) == "" {
			o.wrong(fmt.Sprintf("%s[%d]", texts, i), "must not be blank")
		}
		fixes = append(fixes, command.PreparedFix{Description: strings.TrimSpace(s)})
	}
	if o.fields != nil && len(bugs)+len(fixes) == 0 && len(o.problems.details) == before {
		o.wrong(ids, "must name a fix, or %s must", texts)
		o.wrong(texts, "must name a fix, or %s must", ids)
	}
	return bugs, fixes
}

// texts reads a list of a prepare-next.
func (o object) texts(name string) []string {
	if list := o.strings(name, maxFixes, maxItemText); list != nil {
		return *list
	}
	return nil
}

// failedInLastTest turns ids of items into the fixes to verify. An id that did
// not fail in the project's last test is refused.
func (a *API) failedInLastTest(ctx context.Context, accountID, projectID string, bugs []string) ([]command.PreparedFix, error) {
	if _, err := a.reads.Projects.Get(ctx, accountID, projectID); err != nil || len(bugs) == 0 {
		return nil, err
	}
	failed, err := a.reads.History.LastFailures(ctx, accountID, projectID)
	if err != nil {
		return nil, err
	}
	var p problems
	var fixes []command.PreparedFix
	for i, id := range bugs {
		at := slices.IndexFunc(failed, func(f history.FailedItem) bool { return f.ID == id })
		if at < 0 {
			p.add(fmt.Sprintf("fixedBugIds[%d]", i), "did not fail in the project's last test")
			continue
		}
		f := failed[at]
		fixes = append(fixes, command.PreparedFix{
			BugID: f.ID, Key: f.Key, Description: f.Description, ExpectedOutcome: f.ExpectedOutcome, Severity: f.Severity,
		})
	}
	return fixes, p.err()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
