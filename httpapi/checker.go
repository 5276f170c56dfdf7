package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/projections"
)

// The checker's interface (decisions, section 8).

type queuedJob struct {
	ID               string    `json:"id"`
	Title            string    `json:"title"`
	URL              string    `json:"url"`
	JobType          string    `json:"jobType"`
	JobTypeCode      job.Type  `json:"jobTypeCode"`
	Priority         string    `json:"priority"`
	SLAMinutes       int       `json:"slaMinutes"`
	CreatedAt        timestamp `json:"createdAt"`
	DueAt            timestamp `json:"dueAt"`
	SessionID        *string   `json:"sessionId"`
	TargetDevice     *string   `json:"targetDevice"`
	TargetOS         *string   `json:"targetOS"`
	TargetBrowser    *string   `json:"targetBrowser"`
	TargetScreenSize *string   `json:"targetScreenSize"`
	TargetNetwork    *string   `json:"targetNetwork"`
}

type queueBody struct {
	Jobs []queuedJob `json:"jobs"`
}

// checkerQueue is GET /v1/checker/queue: urgent first, then oldest.
func (a *API) checkerQueue(r *request) (answer, error) {
	var p problems
	limit := parseQuery(r.URL.RawQuery, &p).integer("limit", 20, 1, 100)
	if err := p.err(); err != nil {
		return answer{}, err
	}
	jobs, err := a.reads.Jobs.Queue(r.Context(), r.caller.checkerID, limit)
	if err != nil {
		return answer{}, err
	}
	out := queueBody{Jobs: []queuedJob{}}
	for _, j := range jobs {
		out.Jobs = append(out.Jobs, queuedOf(j))
	}
	return reply(http.StatusOK, out)
}

func queuedOf(j projections.QueuedJob) queuedJob {
	return queuedJob{
		ID: j.ID, Title: j.Title, URL: j.URL, JobType: j.TypeEcho, JobTypeCode: j.Type,
		Priority: priority(j.Urgent), SLAMinutes: j.SLAMinutes,
		CreatedAt: timestamp(j.CreatedAt), DueAt: timestamp(j.DueAt), SessionID: orNull(j.SessionID),
		TargetDevice: orNull(j.Target.Device), TargetOS: orNull(j.Target.OS),
		TargetBrowser: orNull(j.Target.Browser), TargetScreenSize: orNull(j.Target.ScreenSize),
		TargetNetwork: orNull(j.Target.Network),
	}
}

type claimBody struct {
	JobID      string          `json:"jobId"`
	ClaimToken string          `json:"claimToken"`
	DueAt      timestamp       `json:"dueAt"`
	Brief      briefBody       `json:"brief"`
	Checklist  []checklistItem `json:"checklist"`
}

// briefBody is the one answer that holds a client's secrets, for the claimant.
type briefBody struct {
	Title              string           `json:"title"`
	URL                string           `json:"url"`
	Description        string           `json:"description"`
	Feature            *string          `json:"feature"`
	Credentials        *credentialsBody `json:"credentials"`
	AccessInstructions *string          `json:"accessInstructions"`
	ScenarioBrief      string           `json:"scenarioBrief,omitempty"` // of a session's slot
	RoleLabel          string           `json:"roleLabel,omitempty"`     // of a session's slot
}

type credentialsBody struct {
	Username string `json:"username"`
	Password string `json:"password"`
	Notes    string `json:"notes"`
}

type checklistItem struct {
	ID              string       `json:"id"`
	Key             string       `json:"key"`
	Description     string       `json:"description"`
	ExpectedOutcome string       `json:"expectedOutcome"`
	Severity        job.Severity `json:"severity"`
}

// claimAttempts bounds how often the next job of the queue is tried when other
// checkers are faster.
const claimAttempts = 8

// claimJob is POST /v1/checker/claims. Without a jobId the read model
// nominates, the log decides: a nominee that is gone is skipped.
func (a *API) claimJob(r *request) (answer, error) {
	var p problems
	o := parseOptional(r.body, &p)
	wanted := o.id("jobId")
	if err := p.err(); err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		if wanted != "" {
			return a.claim(ctx, r, cause, wanted)
		}
		var gone []string
		var lost error
		for range claimAttempts {
			next, ok, err := a.reads.Jobs.NextForChecker(ctx, r.caller.checkerID, gone)
			if err != nil {
				return answer{}, err
			}
			if !ok {
				return answer{status: http.StatusNoContent}, nil
			}
			cause.CommandID = command.NewCommandID() // each attempt is a command of its own
			ans, err := a.claim(ctx, r, cause, next)
			if err == nil || !jobGone(err) {
				return ans, err
			}
			gone, lost = append(gone, next), err
		}
		return answer{}, lost
	})
}

// jobGone says that only this job is out of reach, not the whole queue because
// of the claims the checker holds already.
func jobGone(err error) bool {
	var refused *domain.Error
	if !errors.As(err, &refused) {
		return false
	}
	_, full := refused.Extras["claimedJobs"]
	return !full && (refused.Kind == domain.KindConflict || refused.Kind == domain.KindNotFound)
}

func (a *API) claim(ctx context.Context, r *request, cause command.Cause, jobID string) (answer, error) {
	c, err := a.commands.ClaimJob(ctx, cause, r.caller.checkerID, jobID)
	if err != nil {
		return answer{}, err
	}
	a.visible(ctx, r, c.Position)
	out := claimBody{
		JobID: c.JobID, ClaimToken: strconv.Itoa(c.Token), DueAt: timestamp(c.DueAt),
		Brief: briefBody{
			Title: c.Brief.Title, URL: c.Brief.URL, Description: c.Brief.Description,
			Feature: orNull(c.Brief.Feature), AccessInstructions: orNull(c.Brief.AccessInstructions),
			ScenarioBrief: c.Brief.ScenarioBrief, RoleLabel: c.Brief.RoleLabel,
		},
		Checklist: []checklistItem{},
	}
	if secret := c.Brief.Credentials; secret != nil {
		out.Brief.Credentials = &credentialsBody{Username: secret.Username, Password: secret.Password, Notes: secret.Notes}
	}
	for _, i := range c.Checklist {
		out.Checklist = append(out.Checklist, checklistItem{
			ID: i.ID, Key: i.Key, Description: i.Description, ExpectedOutcome: i.ExpectedOutcome, Severity: i.Severity,
		})
	}
	return reply(http.StatusCreated, out)
}

const claimTokenHeader = "X-Claim-Token"

// claimOf reads which claim a call is made under.
func claimOf(r *request, p *problems) (command.Claim, error) {
	raw := r.Header.Get(claimTokenHeader)
	token, err := strconv.ParseInt(raw, 10, 32)
	switch {
	case raw == "":
		p.add(claimTokenHeader, "is required: the claimToken of your claim")
	case err != nil || token < 1:
		p.add(claimTokenHeader, "must be the claimToken of your claim")
	}
	if err := p.err(); err != nil {
		return command.Claim{}, err
	}
	if !idPattern.MatchString(r.vars["id"]) {
		return command.Claim{}, domain.NotFound("job")
	}
	return command.Claim{CheckerID: r.caller.checkerID, JobID: r.vars["id"], Token: int(token)}, nil
}

type checkedItem struct {
	checklistItem
	Status        job.ItemStatus `json:"status"`
	Note          string         `json:"note"`
	Reason        *string        `json:"reason"`
	ScreenshotURL *string        `json:"screenshotUrl"`
}

func checkedOf(i job.ReportItem) checkedItem {
	return checkedItem{
		checklistItem: checklistItem{
			ID: i.ID, Key: i.Key, Description: i.Description, ExpectedOutcome: i.ExpectedOutcome, Severity: i.Severity,
		},
		Status: i.Status, Note: i.Note, Reason: orNull(i.Reason), ScreenshotURL: orNull(i.ScreenshotURL),
	}
}

// checkItem is PUT /v1/checker/jobs/:id/items/:itemId.
func (a *API) checkItem(r *request) (answer, error) {
	var p problems
	o := parseObject(r.body, &p)
	in := command.CheckItem{
		ItemID:        r.vars["itemId"],
		Status:        job.ItemStatus(o.verdict("status", job.ItemPass, job.ItemFail, job.ItemSkip)),
		Note:          o.optional("note", maxNote),
		Severity:      o.severity(""),
		Reason:        o.oneOf("reason", "", job.SkipReasons()...),
		ScreenshotURL: o.optional("screenshotUrl", maxURL),
	}
	o.link("screenshotUrl", in.ScreenshotURL)
	o.skipReason(in.Status, in.Reason)
	owner, err := a.refer(r, o, "screenshotUrl", &in.ScreenshotURL)
	if err != nil {
		return answer{}, err
	}
	claim, err := claimOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	if !idPattern.MatchString(in.ItemID) {
		return answer{}, domain.NotFound("checklist item")
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		item, at, err := a.commands.CheckItem(ctx, cause, claim, in)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, at)
		if item.ScreenshotURL, err = a.evidenceLink(ctx, owner, item.ScreenshotURL); err != nil {
			return answer{}, err
		}
		return reply(http.StatusOK, checkedOf(item))
	})
}

// verdict reads the required status of an item.
func (o object) verdict(name string, values ...job.ItemStatus) string {
	s := o.required(name, maxWord)
	if strings.TrimSpace(s) != "" && !slices.Contains(words(values), s) {
		o.wrong(name, "must be %s", oneOfWords(words(values)))
	}
	return s
}

// skipReason: a skip carries a reason, nothing else does.
func (o object) skipReason(status job.ItemStatus, reason string) {
	switch {
	case status == job.ItemSkip && reason == "":
		o.wrong("reason", "is required for a skip: %s", oneOfWords(job.SkipReasons()))
	case (status == job.ItemPass || status == job.ItemFail) && reason != "":
		o.wrong("reason", "only a skip has a reason")
	}
}

// addFinding is POST /v1/checker/jobs/:id/items.
func (a *API) addFinding(r *request) (answer, error) {
	var p problems
	o := parseObject(r.body, &p)
	r.idempotencyKey(&p)
	in := command.AddFinding{
		Description: o.required("description", maxItemText),
		Status:      job.ItemStatus(o.verdict("status", job.ItemPass, job.ItemFail)),
		Note:        o.optional("note", maxNote),
		Severity:    o.severity(job.Major),
	}
	claim, err := claimOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		item, at, err := a.commands.AddFinding(ctx, cause, claim, in)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, at)
		return reply(http.StatusCreated, checkedOf(item))
	})
}

type completedJob struct {
	JobID         string     `json:"jobId"`
	Status        job.Status `json:"status"`
	ReportID      string     `json:"reportId"`
	OverallStatus string     `json:"overallStatus"`
	PassCount     int        `json:"passCount"`
	FailCount     int        `json:"failCount"`
	SkipCount     int        `json:"skipCount"`
}

// completeJob is POST /v1/checker/jobs/:id/complete.
func (a *API) completeJob(r *request) (answer, error) {
	var p problems
	o := parseOptional(r.body, &p)
	in := command.CompleteJob{
		Summary:      o.optional("summary", maxSummary),
		RecordingURL: o.optional("recordingUrl", maxURL),
	}
	o.link("recordingUrl", in.RecordingURL)
	if _, err := a.refer(r, o, "recordingUrl", &in.RecordingURL); err != nil {
		return answer{}, err
	}
	claim, err := claimOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		report, at, err := a.commands.CompleteJob(ctx, cause, claim, in)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, at)
		return reply(http.StatusOK, completedJob{
			JobID: claim.JobID, Status: job.Completed, ReportID: report.ReportID, OverallStatus: report.OverallStatus,
			PassCount: report.PassCount, FailCount: report.FailCount, SkipCount: report.SkipCount,
		})
	})
}

type releasedJob struct {
	JobID  string     `json:"jobId"`
	Status job.Status `json:"status"`
}

// releaseJob is POST /v1/checker/jobs/:id/release.
func (a *API) releaseJob(r *request) (answer, error) {
	claim, err := claimOf(r, new(problems))
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		at, err := a.commands.ReleaseJob(ctx, cause, claim)
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, at)
		return reply(http.StatusOK, releasedJob{JobID: claim.JobID, Status: job.Pending})
	})
}
