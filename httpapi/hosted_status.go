package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"humanqa/domain/job"
	"humanqa/projections/jobs"
)

// The hosted status (decisions, "Hosted status" and "Waiting").

// inProgress is what the hosted endpoints call a claimed job.
const inProgress = "in_progress"

type hostedStatusBody struct {
	JobID           string         `json:"jobId"`
	Status          string         `json:"status"`
	StatusMessage   string         `json:"statusMessage"`
	ProgressPercent int            `json:"progressPercent"`
	URL             string         `json:"url"`
	JobType         string         `json:"jobType"`
	JobTypeCode     job.Type       `json:"jobTypeCode"`
	ProjectID       *string        `json:"projectId"`
	IsFinal         bool           `json:"isFinal"`
	Checklist       checklistState `json:"checklist"`
	AIReportStatus  *string        `json:"aiReportStatus"` // null until completed, generating, completed
	Result          *hostedResult  `json:"result,omitempty"`
	AsOf            *string        `json:"asOf,omitempty"`
}

// checklistState counts the list, and what the checker found beside it.
type checklistState struct {
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
	// statusPoll is how often a waiting request looks: one row by its key.
	statusPoll = 250 * time.Millisecond
)

// hostedStatus is GET /v1/hosted/status/:jobId. With ?wait= it holds the answer
// back until it differs from what the client has (If-None-Match), or from what
// it first was; at the latest when the seconds are over or the service stops.
func (a *API) hostedStatus(r *request) (answer, error) {
	var p problems
	wait := r.query(&p).integer("wait", 0, 0, maxStatusWait)
	if wait > 0 && r.namesMoment() {
		p.add("wait", "must be absent with asOf")
	}
	s, err := a.readHostedStatus(r, &p)
	if err != nil {
		return answer{}, err
	}
	known := r.Header.Values("If-None-Match")
	if wait > 0 {
		has := known
		if len(has) == 0 {
			has = []string{s.tag}
		}
		if s, err = a.awaitChange(r, s, has, time.Duration(wait)*time.Second); err != nil {
			return answer{}, err
		}
	}
	// The tag is for asking again: a store may keep the answer, to that end.
	header := http.Header{"Etag": {s.tag}, "Cache-Control": {"private, no-cache"}}
	if matches(known, s.tag) {
		return answer{status: http.StatusNotModified, header: header}, nil
	}
	return answer{status: http.StatusOK, header: header, body: s.body}, nil
}

// awaitChange gives the first status that the client does not have yet, or the
// last one there was time for. What can change no more is not waited for.
func (a *API) awaitChange(r *request, s hostedState, has []string, atMost time.Duration) (hostedState, error) {
	over := time.NewTimer(atMost)
	defer over.Stop()
	look := time.NewTicker(statusPoll)
	defer look.Stop()
	mayAt := time.Now() // when the key was looked at
	for !s.settled && matches(has, s.tag) {
		select {
		case <-look.C:
		case <-over.C:
			return s, nil
		case <-a.stopping.begun():
			return s, nil
		case <-r.Context().Done():
			return s, r.Context().Err()
		}
		var err error
		if time.Since(mayAt) >= keysEvery {
			if err = a.stillMay(r.Context(), r); err != nil {
				return s, err
			}
			mayAt = time.Now()
		}
		if s, err = a.readHostedStatus(r, new(problems)); err != nil {
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

func (a *API) readHostedStatus(r *request, p *problems) (hostedState, error) {
	j, past, at, err := a.ownJobThen(r, r.vars["jobId"], p)
	if err != nil {
		return hostedState{}, err
	}
	out := hostedStatusOf(j)
	out.AsOf = at.then()
	if j.Status == job.StatusCompleted {
		report, err := a.reportThen(r.Context(), r.caller.accountID, j.ID, past)
		if err != nil {
			return hostedState{}, err
		}
		out.Result = resultOf(report)
	}
	body, err := encode(out)
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
		ProjectID: orNull(j.ProjectID), IsFinal: j.IsFinal(), AIReportStatus: orNull(string(j.AIReport())),
		Checklist: progressOf(j.Items),
	}
	if j.Status == job.StatusClaimed {
		out.Status = inProgress
	}
	out.ProgressPercent = progress(j.Status, out.Checklist)
	out.StatusMessage = statusMessage(j, out.Checklist)
	return out
}

// progress is checked/total, rounded down. Only a completed job is done.
func progress(status job.Status, c checklistState) int {
	switch {
	case status == job.StatusCompleted:
		return 100
	case status == job.StatusPending || c.TotalItems == 0:
		return 0
	}
	return min(99, 100*c.CheckedItems/c.TotalItems)
}

func statusMessage(j jobs.Job, c checklistState) string {
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
	case j.Type == job.AIReview:
		return "Waiting for the AI review."
	case j.RequeueCount > 0:
		return "Back in the queue, waiting for another checker."
	}
	return "Waiting for a checker."
}

func resultOf(report jobs.Report) *hostedResult {
	out := &hostedResult{
		OverallStatus: report.OverallStatus, PassCount: report.PassCount, FailCount: report.FailCount,
		SkipCount: report.SkipCount, Summary: report.Summary, Items: []resultItem{},
	}
	for _, i := range report.Items {
		out.Items = append(out.Items, resultItem{ID: i.ID, Description: i.Description, Status: i.Status, Note: i.Note})
	}
	return out
}

// matches compares an ETag with the values of If-None-Match, weakly (RFC 9110,
// section 13.1.2).
func matches(known []string, tag string) bool {
	for _, line := range known {
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == tag || one == "*" {
				return true
			}
		}
	}
	return false
}

// stopSignal tells requests that wait for something that the service is about
// to stop: they answer with what there is.
type stopSignal struct {
	once sync.Once
	ch   chan struct{}
}

func newStopSignal() *stopSignal { return &stopSignal{ch: make(chan struct{})} }

func (s *stopSignal) begun() <-chan struct{} { return s.ch }

func (s *stopSignal) begin() { s.once.Do(func() { close(s.ch) }) }
