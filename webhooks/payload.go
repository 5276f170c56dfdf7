package webhooks

import (
	"humanqa/domain"
	"humanqa/domain/job"
)

// common is what data holds for every event about a job (decisions, section
// 7).
type common struct {
	ProjectID          projectID  `json:"projectId"`
	JobID              string     `json:"jobId"`
	DashboardReportURL string     `json:"dashboardReportUrl"`
	Title              string     `json:"title"`
	URL                string     `json:"url"`
	JobType            string     `json:"jobType"` // as submitted
	JobTypeCode        string     `json:"jobTypeCode"`
	Status             job.Status `json:"status"`
	Priority           string     `json:"priority"`
	SessionID          *string    `json:"sessionId"`
}

func (f Facts) common(baseURL, jobID string) common {
	c := common{
		ProjectID: projectID(f.ProjectID), JobID: jobID, DashboardReportURL: ReportPage(baseURL, jobID),
		Title: f.Title, URL: f.URL, JobType: f.TypeEcho, JobTypeCode: string(f.Type), Priority: "normal",
	}
	if f.Urgent {
		c.Priority = "urgent"
	}
	if f.SessionID != "" {
		c.SessionID = &f.SessionID
	}
	return c
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

type slaData struct {
	common
	SLAMinutes      int            `json:"slaMinutes"`
	RequeueCount    int            `json:"requeueCount"`
	Requeued        bool           `json:"requeued"`
	CreditsRefunded domain.Credits `json:"creditsRefunded"`
}

type cancelledData struct {
	common
	CancelledAt     string         `json:"cancelledAt"`
	Reason          string         `json:"reason"`
	CreditsRefunded domain.Credits `json:"creditsRefunded"`
}

type failedData struct {
	common
	FailedAt        string         `json:"failedAt"`
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
	AIReport       *aiReport       `json:"aiReport"`
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

type aiReportData struct {
	common
	ReportID string   `json:"reportId"`
	AIReport aiReport `json:"aiReport"`
}

// aiReport is the analysis as the report variant documents it.
type aiReport struct {
	ID               string   `json:"id"`
	Status           string   `json:"status"`
	HealthScore      int      `json:"healthScore"`
	ExecutiveSummary string   `json:"executiveSummary"`
	BugCount         int      `json:"bugCount"`
	Bugs             []bug    `json:"bugs"`
	Strengths        []string `json:"strengths"`
	Recommendations  []string `json:"recommendations"`
}

type bug struct {
	Title        string       `json:"title"`
	Severity     job.Severity `json:"severity"`
	SuggestedFix string       `json:"suggestedFix"`
}

// aboutJob gives the data of an event about a job.
func aboutJob(event domain.Event, c common, f Facts) any {
	switch e := event.(type) {
	case *job.Created:
		c.Status = job.Pending
		return createdData{
			common: c, CreatedAt: stamp(e.CreatedAt), SLAMinutes: e.SLAMinutes,
			CreditsDeducted: e.Price, ChecklistItemCount: len(e.Items), Source: e.Source,
		}
	case *job.ClaimedBy:
		c.Status = job.Claimed
		return claimedData{common: c, ClaimedAt: stamp(e.At)}
	case *job.SLAMissed:
		c.Status = job.Failed
		if e.Requeued {
			c.Status = job.Pending
		}
		return slaData{
			common: c, SLAMinutes: f.SLAMinutes, RequeueCount: e.RequeueCount, Requeued: e.Requeued,
			CreditsRefunded: e.Refund,
		}
	case *job.CancelledBy:
		c.Status = job.Cancelled
		return cancelledData{common: c, CancelledAt: stamp(e.At), Reason: e.Reason, CreditsRefunded: e.Refund}
	case *job.FailedBy:
		c.Status = job.Failed
		return failedData{common: c, FailedAt: stamp(e.At), Reason: e.Reason, CreditsRefunded: e.Refund}
	case *job.AIReportReady:
		c.Status = job.Completed
		return aiReportData{common: c, ReportID: f.ReportID, AIReport: analysis(e.AIReport)}
	case *job.CompletedWith:
		c.Status = job.Completed
		return completed(c, e)
	}
	return c
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

func analysis(r job.AIReport) aiReport {
	a := aiReport{
		ID: r.ID, Status: "completed", HealthScore: r.HealthScore, ExecutiveSummary: r.ExecutiveSummary,
		BugCount: len(r.Bugs), Bugs: make([]bug, 0, len(r.Bugs)),
		// Empty lists, never null.
		Strengths:       append([]string{}, r.Strengths...),
		Recommendations: append([]string{}, r.Recommendations...),
	}
	for _, b := range r.Bugs {
		a.Bugs = append(a.Bugs, bug{Title: b.Title, Severity: b.Severity, SuggestedFix: b.SuggestedFix})
	}
	return a
}
