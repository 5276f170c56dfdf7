package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/projections/jobs"
)

// The checker's interface (decisions, "Checker keys", "Claims", "Checker
// queue" and "Checker work").

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
	limit := r.query(&p).integer("limit", 20, 1, 100)
	if err := p.err(); err != nil {
		return answer{}, err
	}
	queue, err := a.reads.Jobs.Queue(r.Context(), r.caller.checkerID, limit)
	if err != nil {
		return answer{}, err
	}
	out := queueBody{Jobs: []queuedJob{}}
	for _, j := range queue {
		out.Jobs = append(out.Jobs, queuedOf(j))
	}
	return reply(http.StatusOK, out)
}

func queuedOf(j jobs.QueuedJob) queuedJob {
	return queuedJob{
		ID: j.ID, Title: j.Title, URL: j.URL, JobType: j.TypeEcho, JobTypeCode: j.Type,
		Priority: priority(j.Urgent), SLAMinutes: j.SLAMinutes,
		CreatedAt: timestamp(j.CreatedAt), DueAt: timestamp(j.DueAt), SessionID: orNull(j.SessionID),
		TargetDevice: orNull(j.Target.Device), TargetOS: orNull(j.Target.OS),
		TargetBrowser: orNull(j.Target.Browser), TargetScreenSize: orNull(j.Target.ScreenSize),
		TargetNetwork: orNull(j.Target.Network),
	}
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

// checkedItem is an item with its verdict, which is pending until there is one.
type checkedItem struct {
	ID              string         `json:"id"`
	Key             string         `json:"key"`
	Description     string         `json:"description"`
	ExpectedOutcome string         `json:"expectedOutcome"`
	Severity        job.Severity   `json:"severity"`
	Status          job.ItemStatus `json:"status"`
	Note            string         `json:"note"`
	Reason          *string        `json:"reason"`
	ScreenshotURL   *string        `json:"screenshotUrl"`
	ScreenshotURLs  []string       `json:"screenshotUrls,omitempty"` // all, where there are several
}

func checkedOf(i job.ReportItem) checkedItem {
	return checkedItem{
		ID: i.ID, Key: i.Key, Description: i.Description, ExpectedOutcome: i.ExpectedOutcome, Severity: i.Severity,
		Status: i.Status, Note: i.Note, Reason: orNull(i.Reason), ScreenshotURL: orNull(i.ScreenshotURL), ScreenshotURLs: several(i),
	}
}

// several are the item's pictures, where there is more than one.
func several(i job.ReportItem) []string {
	if len(i.MoreScreenshotURLs) == 0 {
		return nil
	}
	return i.Screenshots()
}

// checkItem is PUT /v1/checker/jobs/:id/items/:itemId.
func (a *API) checkItem(r *request) (answer, error) {
	var p problems
	o := r.object(&p)
	in := o.checkItem(r.vars["itemId"])
	var owner string
	var err error
	if in.Screenshots, owner, err = a.screenshots(r, o); err != nil {
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
		var item job.ReportItem
		var at domain.Position
		err := a.GiveEvidence(ctx, claim.JobID, in.Screenshots, func() (err error) {
			item, at, err = a.commands.CheckItem(ctx, cause, claim, in)
			return err
		})
		if err != nil {
			return answer{}, err
		}
		a.visible(ctx, r, at)
		if err := linkItem(&item, func(stored string) (string, error) { return a.evidenceLink(ctx, owner, stored) }); err != nil {
			return answer{}, err
		}
		return reply(http.StatusOK, checkedOf(item))
	})
}

// screenshots reads an item's pictures: screenshotUrl, or several as
// screenshotUrls.
func (a *API) screenshots(r *request, o object) (links []string, owner string, err error) {
	one := o.optional("screenshotUrl", maxURL)
	paths := []string{"screenshotUrl"}
	if list := o.strings("screenshotUrls", job.MaxScreenshots, maxURL); list != nil {
		if one != "" {
			o.wrong("screenshotUrls", "goes without screenshotUrl: its first one is that")
		}
		links, paths = *list, nil
		for i := range links {
			paths = append(paths, fmt.Sprintf("screenshotUrls[%d]", i))
		}
	} else if one != "" {
		links = []string{one}
	}
	for i := range links {
		o.link(paths[i], links[i])
		of, err := a.refer(r, o, paths[i], &links[i])
		if err != nil {
			return nil, "", err
		}
		owner = cmp.Or(of, owner)
	}
	return links, owner, nil
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
	case (status == job.ItemPass || status == job.ItemFail || status == job.ItemPending) && reason != "":
		o.wrong("reason", "only a skip has a reason")
	}
}

// addFinding is POST /v1/checker/jobs/:id/items.
func (a *API) addFinding(r *request) (answer, error) {
	var p problems
	o := r.object(&p)
	r.idempotencyKey(&p)
	in := o.finding()
	claim, err := claimOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	return a.write(r, func(ctx context.Context, cause command.Cause) (answer, error) {
		item, at, err := a.commands.AddFinding(ctx, cause, claim, in)
		return a.done(ctx, r, at, err, http.StatusCreated, checkedOf(item))
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

func completedOf(jobID string, report job.Completed) completedJob {
	return completedJob{
		JobID: jobID, Status: job.StatusCompleted, ReportID: report.ReportID, OverallStatus: report.OverallStatus,
		PassCount: report.PassCount, FailCount: report.FailCount, SkipCount: report.SkipCount,
	}
}

// completeJob is POST /v1/checker/jobs/:id/complete.
func (a *API) completeJob(r *request) (answer, error) {
	var p problems
	o := r.optionalObject(&p)
	in := command.CompleteJob{
		Summary:      o.summary(),
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
		var report job.Completed
		var at domain.Position
		err := a.GiveEvidence(ctx, claim.JobID, []string{in.RecordingURL}, func() (err error) {
			report, at, err = a.commands.CompleteJob(ctx, cause, claim, in)
			return err
		})
		return a.done(ctx, r, at, err, http.StatusOK, completedOf(claim.JobID, report))
	})
}

// summary reads the checker's words on the whole. A completion cannot be taken
// back, so words that would be lost under another name are refused.
func (o object) summary() string {
	for _, name := range []string{"summary", "checkerSummary"} { // the report's name of it
		if words := o.optional(name, maxSummary); words != "" {
			return words
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		if name != "recordingUrl" && tellsSomething(name, o.fields[name]) {
			o.wrong(cmp.Or(clip(name, maxWord), "body"), "is not known, and reads like the summary: send it as summary")
		}
	}
	return ""
}

// tellsSomething says whether a field reads like words for people: by its name,
// or because there is more than one word in it.
func tellsSomething(name string, raw json.RawMessage) bool {
	var text string
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil || strings.TrimSpace(text) == "" {
		return false
	}
	return len(strings.Fields(text)) > 1 || strings.Contains(strings.ToLower(name), "summary") || near(name, "summary")
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
		return a.done(ctx, r, at, err, http.StatusOK, releasedJob{JobID: claim.JobID, Status: job.StatusPending})
	})
}
