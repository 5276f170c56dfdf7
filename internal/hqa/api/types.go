package api

import (
	"cmp"
	"encoding/json"
	"errors"
)

// The parts of the service's answers that the client reads. It ignores further fields:
// the service may add some.

// Submitted is a job that was accepted.
type Submitted struct {
	JobID                      string `json:"jobId"`
	ProjectID                  string `json:"projectId"`
	Status                     string `json:"status"`
	EstimatedCompletionMinutes int    `json:"estimatedCompletionMinutes"`
	CreditsDeducted            int    `json:"creditsDeducted"`
	LoopSessionID              string `json:"loopSessionId"` // of a test with a LoopStep
}

// Read fills it from an answer, and gives the ids of its jobs.
func (s *Submitted) Read(raw []byte) (jobIDs []string, err error) {
	if err := json.Unmarshal(raw, s); err != nil || s.JobID == "" {
		return nil, cmp.Or(err, errNoJob)
	}
	return []string{s.JobID}, nil
}

// Batch is several jobs that were accepted together.
type Batch struct {
	BatchID              string   `json:"batchId"`
	JobIDs               []string `json:"jobIds"`
	TotalCreditsDeducted int      `json:"totalCreditsDeducted"`
}

// Read fills it from an answer, and gives the ids of its jobs.
func (b *Batch) Read(raw []byte) (jobIDs []string, err error) {
	if err := json.Unmarshal(raw, b); err != nil || len(b.JobIDs) == 0 {
		return nil, cmp.Or(err, errNoJob)
	}
	return b.JobIDs, nil
}

var errNoJob = errors.New("the answer names no job")

// Estimate is the price of a job before it is paid.
type Estimate struct {
	CreditsRequired            int `json:"creditsRequired"`
	CreditsAvailable           int `json:"creditsAvailable"`
	EstimatedCompletionMinutes int `json:"estimatedCompletionMinutes"`
}

// Job is a job as it is read alone.
type Job struct {
	Status        string  `json:"status"`
	Title         string  `json:"title"`
	URL           string  `json:"url"`
	JobType       string  `json:"jobType"`
	Priority      string  `json:"priority"`
	ProjectID     string  `json:"projectId"`
	Description   string  `json:"description"`
	IsFinal       bool    `json:"isFinal"`
	RequeueCount  int     `json:"requeueCount"`
	OverallStatus *string `json:"overallStatus"`
	FailReason    string  `json:"failReason"`
	CancelReason  string  `json:"cancelReason"`

	OpenQuestion *Question `json:"openQuestion"`
}

// State is a job's progress, by GET /v1/hosted/status.
type State struct {
	JobID           string    `json:"jobId"`
	Status          string    `json:"status"`
	StatusMessage   string    `json:"statusMessage"`
	ProgressPercent int       `json:"progressPercent"`
	URL             string    `json:"url"`
	IsFinal         bool      `json:"isFinal"`
	Checklist       Counts    `json:"checklist"`
	Items           []Item    `json:"items,omitempty"`
	OpenQuestion    *Question `json:"openQuestion,omitempty"`
}

// Counts are the numbers of a checklist's items, by their results.
type Counts struct {
	TotalItems   int `json:"totalItems"`
	CheckedItems int `json:"checkedItems"`
	PassedItems  int `json:"passedItems"`
	FailedItems  int `json:"failedItems"`
	SkippedItems int `json:"skippedItems"`
}

// Question is a checker's question in the middle of a test.
type Question struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Status string `json:"status"`
	Until  string `json:"until"`
}

// The states of a job that the client tells apart.
const (
	InProgress = "in_progress"
	Completed  = "completed"
	Cancelled  = "cancelled"
)

// The verdicts on an item.
const (
	Pending = "pending"
	Fail    = "fail"
)

// Item is one point of a checklist, with its verdict as far as there is one.
type Item struct {
	ID          string `json:"id"`
	Description string `json:"description"`
	Severity    string `json:"severity"`
	Status      string `json:"status"`
	Note        string `json:"note"`
}

// Report is a job's report.
type Report struct {
	ProjectID      string       `json:"projectId"`
	OverallStatus  string       `json:"overallStatus"`
	PassCount      int          `json:"passCount"`
	FailCount      int          `json:"failCount"`
	SkipCount      int          `json:"skipCount"`
	CheckerSummary string       `json:"checkerSummary"`
	Items          []ReportItem `json:"items"`
}

// ReportItem is an item of a report.
type ReportItem struct {
	ID              string `json:"id"`
	Key             string `json:"key"`
	Description     string `json:"description"`
	ExpectedOutcome string `json:"expectedOutcome"`
	Severity        string `json:"severity"`
	Status          string `json:"status"`
	CheckerNote     string `json:"checkerNote"`
}

// JobEvents are a job's announcements.
type JobEvents struct {
	Events []struct {
		Cursor string `json:"cursor"`
	} `json:"events"`
}
