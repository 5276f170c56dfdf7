package v1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// The hosted status (decisions, "Hosted status" and "Waiting").

// inProgress is the status of a claimed job at the hosted endpoints.
const inProgress = "in_progress"

type hostedStatusBody struct {
	JobID           string           `json:"jobId"`
	Status          string           `json:"status"`
	StatusMessage   string           `json:"statusMessage"`
	ProgressPercent int              `json:"progressPercent"`
	URL             string           `json:"url"`
	JobType         string           `json:"jobType"`
	JobTypeCode     job.Type         `json:"jobTypeCode"`
	ProjectID       *string          `json:"projectId"`
	IsFinal         bool             `json:"isFinal"`
	Checklist       ChecklistState   `json:"checklist"`
	AIReportStatus  *string          `json:"aiReportStatus"`  // null until completed, generating, completed
	Items           []liveItem       `json:"items,omitempty"` // with ?items=true, as the next field
	OpenQuestion    *report.Question `json:"openQuestion,omitempty"`
	Result          *hostedResult    `json:"result,omitempty"`
	AsOf            *string          `json:"asOf,omitempty"`
}

// liveItem is an item of a test that may be running.
type liveItem struct {
	ID          string         `json:"id"`
	Description string         `json:"description"`
	Severity    job.Severity   `json:"severity"`
	Status      job.ItemStatus `json:"status"` // pending until it is checked
	Note        string         `json:"note"`
}

// ChecklistState counts the items of the checklist, and the checker's findings.
type ChecklistState struct {
	TotalItems   int `json:"totalItems"`
	CheckedItems int `json:"checkedItems"`
	PassedItems  int `json:"passedItems"`
	FailedItems  int `json:"failedItems"`
	SkippedItems int `json:"skippedItems"`
}

type hostedResult struct {
	OverallStatus string       `json:"overallStatus"`
	PassCount     int          `json:"passCount"`
	FailCount     int          `json:"failCount"`
	SkipCount     int          `json:"skipCount"`
	Summary       string       `json:"summary"`
	Items         []resultItem `json:"items"`
}

type resultItem struct {
	ID          string         `json:"id"`
	Description string         `json:"description"`
	Status      job.ItemStatus `json:"status"`
	Note        string         `json:"note"`
}

const (
	// maxStatusWait is the longest ?wait=, in seconds.
	maxStatusWait = 25
	// statusPoll is the time between two looks of a waiting request: one row by its key.
	statusPoll = 250 * time.Millisecond
)

// hostedStatus is GET /v1/hosted/status/:jobId. With ?wait= it holds the answer back
// until the status differs from that of If-None-Match, or else from the first one. It
// answers at the latest when the seconds are over or the service stops.
func (a *Handlers) hostedStatus(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	wait := q.Integer("wait", 0, 0, maxStatusWait)
	withItems := q.OneOf("items", []string{"true", "false"}) == "true"
	if wait > 0 && r.NamesMoment() {
		p.Add("wait", "must be absent with asOf")
	}
	s, err := a.readHostedStatus(r, &p, withItems)
	if err != nil {
		return wire.Answer{}, err
	}
	known := r.Header.Values("If-None-Match")
	if wait > 0 {
		has := known
		if len(has) == 0 {
			has = []string{s.tag}
		}
		r.LeaveLoad()
		if s, err = a.awaitChange(r, s, has, time.Duration(wait)*time.Second, withItems); err != nil {
			return wire.Answer{}, err
		}
	}
	// A cache may keep the answer, but only to ask again with its tag.
	header := http.Header{"Etag": {s.tag}, "Cache-Control": {"private, no-cache"}}
	if wire.Matches(known, s.tag) {
		return wire.Answer{Status: http.StatusNotModified, Header: header}, nil
	}
	return wire.Answer{Status: http.StatusOK, Header: header, Body: s.body}, nil
}

// awaitChange gives the first status that the client does not have yet, or the last one
// that there was time for. It does not wait for a status that cannot change any more.
func (a *Handlers) awaitChange(
	r *wire.Request, s hostedState, has []string, atMost time.Duration, withItems bool,
) (hostedState, error) {
	over := time.NewTimer(atMost)
	defer over.Stop()
	look := time.NewTicker(statusPoll)
	defer look.Stop()
	mayAt := time.Now() // when the key was looked at
	for !s.settled && wire.Matches(has, s.tag) {
		select {
		case <-look.C:
		case <-over.C:
			return s, nil
		case <-a.Stopping:
			return s, nil
		case <-r.Context().Done():
			return s, r.Context().Err()
		}
		var err error
		if time.Since(mayAt) >= readers.KeysEvery {
			if err = a.Gate.StillMay(r.Context(), r); err != nil {
				return s, err
			}
			mayAt = time.Now()
		}
		if s, err = a.readHostedStatus(r, new(wire.Problems), withItems); err != nil {
			return s, err
		}
	}
	return s, nil
}

// hostedState is the status as it would be answered now.
type hostedState struct {
	body    []byte
	tag     string // a strong ETag: equal bytes, equal tag
	settled bool
}

func (a *Handlers) readHostedStatus(r *wire.Request, p *wire.Problems, withItems bool) (hostedState, error) {
	j, past, at, err := a.ownJobThen(r, r.Vars["jobId"], p)
	if err != nil {
		return hostedState{}, err
	}
	out := hostedStatusOf(j)
	out.AsOf = at.then()
	if withItems {
		out.Items = wire.List(j.Items, func(i job.ReportItem) liveItem {
			return liveItem{ID: i.ID, Description: i.Description, Severity: i.Severity, Status: i.Status, Note: i.Note}
		})
		out.OpenQuestion = openQuestion(j)
	}
	if j.Status == job.StatusCompleted {
		stored, err := a.Reports.Stored(r.Context(), r.Caller.AccountID, j.ID, past)
		if err != nil {
			return hostedState{}, err
		}
		out.Result = resultOf(stored)
	}
	body, err := domain.EncodeJSON(out)
	if err != nil {
		return hostedState{}, fmt.Errorf("encode answer: %w", err)
	}
	sum := sha256.Sum256(body)
	return hostedState{
		body: body, tag: `"` + hex.EncodeToString(sum[:16]) + `"`,
		settled: j.IsFinal() && j.AIReport() != jobs.AIReportGenerating,
	}, nil
}

func hostedStatusOf(j jobs.Job) hostedStatusBody {
	out := hostedStatusBody{
		JobID: j.ID, Status: string(j.Status), URL: j.URL, JobType: j.TypeEcho, JobTypeCode: j.Type,
		ProjectID: wire.OrNull(j.ProjectID), IsFinal: j.IsFinal(), AIReportStatus: wire.OrNull(string(j.AIReport())),
		Checklist: ProgressOf(j.Items),
	}
	if j.Status == job.StatusClaimed {
		out.Status = inProgress
	}
	out.ProgressPercent = progress(j.Status, out.Checklist)
	out.StatusMessage = statusMessage(j, out.Checklist)
	return out
}

// progress is checked/total, rounded down. Only a completed job is done.
func progress(status job.Status, c ChecklistState) int {
	switch {
	case status == job.StatusCompleted:
		return 100
	case status == job.StatusPending || c.TotalItems == 0:
		return 0
	}
	return min(99, 100*c.CheckedItems/c.TotalItems)
}

func statusMessage(j jobs.Job, c ChecklistState) string {
	switch j.Status {
	case job.StatusClaimed:
		return fmt.Sprintf("A checker is testing: %d of %d items checked.", c.CheckedItems, c.TotalItems)
	case job.StatusCompleted:
		return fmt.Sprintf("The test is completed: %d passed, %d failed, %d skipped.",
			c.PassedItems, c.FailedItems, c.SkippedItems)
	case job.StatusCancelled:
		return "The test was cancelled; its credits were refunded."
	case job.StatusFailed:
		return "The test could not be done; its credits were refunded."
	case job.StatusPending, job.StatusVoided: // a voided job is never shown
	}
	switch {
	case j.Type.Automatic():
		return "Waiting for the AI review."
	case j.RequeueCount > 0:
		return "Back in the queue, waiting for another checker."
	}
	return "Waiting for a checker."
}

func resultOf(tested jobs.Report) *hostedResult {
	return &hostedResult{
		OverallStatus: tested.OverallStatus, PassCount: tested.PassCount, FailCount: tested.FailCount,
		SkipCount: tested.SkipCount, Summary: tested.Summary, Items: wire.List(tested.Items, func(i job.ReportItem) resultItem {
			return resultItem{ID: i.ID, Description: i.Description, Status: i.Status, Note: i.Note}
		}),
	}
}

func ProgressOf(items []job.ReportItem) ChecklistState {
	pass, fail, skip := job.Counts(items)
	return ChecklistState{
		TotalItems: len(items), CheckedItems: pass + fail + skip, PassedItems: pass, FailedItems: fail, SkippedItems: skip,
	}
}
