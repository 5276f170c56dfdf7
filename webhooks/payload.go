package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// envelope is the body of a delivery (specification, "Delivery envelope").
type envelope struct {
	Event              string `json:"event"`
	Type               string `json:"type"`
	Timestamp          string `json:"timestamp"`
	ProjectID          string `json:"projectId"`
	JobID              string `json:"jobId,omitempty"`
	DashboardReportURL string `json:"dashboardReportUrl,omitempty"`
	Data               any    `json:"data"`
}

// common is what data holds for every event about a job (decisions, section
// 7).
type common struct {
	ProjectID          string  `json:"projectId"`
	JobID              string  `json:"jobId"`
	DashboardReportURL string  `json:"dashboardReportUrl"`
	Title              string  `json:"title"`
	URL                string  `json:"url"`
	JobType            string  `json:"jobType"` // as submitted
	JobTypeCode        string  `json:"jobTypeCode"`
	Status             string  `json:"status"`
	Priority           string  `json:"priority"`
	SessionID          *string `json:"sessionId"`
}

type createdData struct {
	common
	CreatedAt          string         `json:"createdAt"`
	SLAMinutes         int            `json:"slaMinutes"`
	CreditsDeducted    domain.Credits `json:"creditsDeducted"`
	ChecklistItemCount int            `json:"checklistItemCount"`
	Source             string         `json:"source"`
}

// claimedData never says who claimed.
type claimedData struct {
	common
	ClaimedAt string `json:"claimedAt"`
}

type cancelledData struct {
	common
	CancelledAt     string         `json:"cancelledAt"`
	Reason          string         `json:"reason"`
	CreditsRefunded domain.Credits `json:"creditsRefunded"`
}

// completedData is the union of both documented variants. The analysis comes
// later, with an event of its own, so aiReport is null here.
type completedData struct {
	common
	ReportID       string          `json:"reportId"`
	OverallStatus  string          `json:"overallStatus"`
	PassCount      int             `json:"passCount"`
	FailCount      int             `json:"failCount"`
	SkipCount      int             `json:"skipCount"`
	Summary        string          `json:"summary"`
	AIReport       *struct{}       `json:"aiReport"`
	OverallScore   int             `json:"overallScore"`
	CriticalIssues int             `json:"criticalIssues"`
	MajorIssues    int             `json:"majorIssues"`
	MinorIssues    int             `json:"minorIssues"`
	CompletedAt    string          `json:"completedAt"`
	Checklist      []checklistItem `json:"checklist"`
}

type checklistItem struct {
	Description string `json:"description"`
	Status      string `json:"status"`
	Severity    string `json:"severity"`
	Notes       string `json:"notes,omitempty"`
}

// announces says whether an event of the log is one that endpoints hear of.
func announces(e domain.Event) bool {
	switch e.(type) {
	case *job.Created, *job.ClaimedBy, *job.CompletedWith, *job.CancelledBy:
		return true
	}
	return false
}

// payload gives the bytes to sign and send: the same event always gives the
// same ones.
func payload(baseURL string, r domain.Recorded, jobID string, f facts) ([]byte, error) {
	c := common{
		ProjectID: f.ProjectID, JobID: jobID, DashboardReportURL: baseURL + "/dashboard/jobs/" + jobID,
		Title: f.Title, URL: f.URL, JobType: f.TypeEcho, JobTypeCode: string(f.Type), Priority: "normal",
	}
	if f.Urgent {
		c.Priority = "urgent"
	}
	if f.SessionID != "" {
		c.SessionID = &f.SessionID
	}
	body := envelope{
		Event: r.Type, Type: r.Type, Timestamp: stamp(r.Meta.Time),
		ProjectID: c.ProjectID, JobID: c.JobID, DashboardReportURL: c.DashboardReportURL,
	}
	switch e := r.Event.(type) {
	case *job.Created:
		c.Status = string(job.Pending)
		body.Data = createdData{
			common: c, CreatedAt: stamp(e.CreatedAt), SLAMinutes: e.SLAMinutes,
			CreditsDeducted: e.Price, ChecklistItemCount: len(e.Items), Source: e.Source,
		}
	case *job.ClaimedBy:
		c.Status = string(job.Claimed)
		body.Data = claimedData{common: c, ClaimedAt: stamp(e.At)}
	case *job.CancelledBy:
		c.Status = string(job.Cancelled)
		body.Data = cancelledData{common: c, CancelledAt: stamp(e.At), Reason: e.Reason, CreditsRefunded: e.Refund}
	case *job.CompletedWith:
		c.Status = string(job.Completed)
		body.Data = completed(c, e)
	default:
		return nil, fmt.Errorf("no payload for %s", r.Type)
	}
	return encode(body)
}

func completed(c common, e *job.CompletedWith) completedData {
	d := completedData{
		common: c, ReportID: e.ReportID, OverallStatus: e.OverallStatus,
		PassCount: e.PassCount, FailCount: e.FailCount, SkipCount: e.SkipCount, Summary: e.Summary,
		OverallScore: job.HealthScore(e.Items), CompletedAt: stamp(e.At),
		Checklist: make([]checklistItem, 0, len(e.Items)),
	}
	for _, i := range e.Items {
		d.Checklist = append(d.Checklist, checklistItem{
			Description: i.Description, Status: string(i.Status), Severity: string(i.Severity), Notes: i.Note,
		})
		if i.Status != job.ItemFail {
			continue
		}
		switch i.Severity {
		case job.Critical:
			d.CriticalIssues++
		case job.Major:
			d.MajorIssues++
		case job.Minor:
			d.MinorIssues++
		}
	}
	return d
}

// stamp writes a time as the API does: UTC, milliseconds, Z.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// encode leaves <, > and & as they are: nothing here goes into a page, and
// URLs stay readable.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode payload: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
