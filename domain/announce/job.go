package announce

import (
	"humanqa/domain"
	"humanqa/domain/job"
)

var jobKinds = []Kind{
	kind("job.created", created),
	kind("job.completed", completed),
	reported(kind("job.ai_report_ready", aiReportReady)),
	kind("job.claimed", claimed),
	kind("job.failed_sla", slaMissed),
	kind("job.cancelled", cancelled),
	kind("job.failed", failed),
	kind("job.question_asked", questionAsked),
	kind("job.question_answered", questionAnswered),
	kind("job.disputed", disputed),
	kind("job.dispute_answered", disputeAnswered),
	kind("job.dispute_decided", disputeDecided),
}

// common has the fields of data for every event about a job (decisions, "Job payloads").
type common struct {
	ProjectID          orNull     `json:"projectId"`
	JobID              string     `json:"jobId"`
	DashboardReportURL string     `json:"dashboardReportUrl"`
	Title              string     `json:"title"`
	URL                string     `json:"url"`
	JobType            string     `json:"jobType"` // as submitted
	JobTypeCode        string     `json:"jobTypeCode"`
	Status             job.Status `json:"status"`
	Priority           string     `json:"priority"`
	SessionID          orNull     `json:"sessionId"`
}

// job gives the fields of every announcement about the job, with its status after the
// event.
func (s subject) job(status job.Status) common {
	c := common{
		ProjectID: orNull(s.ProjectID), JobID: s.id, DashboardReportURL: ReportPage(s.baseURL, s.id),
		Title: s.Title, URL: s.URL, JobType: s.TypeEcho, JobTypeCode: string(s.Type),
		Status: status, Priority: "normal", SessionID: orNull(s.SessionID),
	}
	if s.Urgent {
		c.Priority = "urgent"
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

// claimedData never names the checker.
type claimedData struct {
	common
	ClaimedAt string `json:"claimedAt"`
}

type slaData struct {
	common
	SLAMinutes      int            `json:"slaMinutes"`
	RequeueCount    int            `json:"requeueCount"`
	Requeued        bool           `json:"requeued"`
	CreditsRefunded domain.Credits `json:"creditsRefunded"` // what came back
	CreditsExpired  domain.Credits `json:"creditsExpired"`  // what went into expired lots
}

type cancelledData struct {
	common
	CancelledAt     string         `json:"cancelledAt"`
	Reason          string         `json:"reason"`
	CreditsRefunded domain.Credits `json:"creditsRefunded"` // what came back
	CreditsExpired  domain.Credits `json:"creditsExpired"`  // what went into expired lots
}

type failedData struct {
	common
	FailedAt        string         `json:"failedAt"`
	Reason          string         `json:"reason"`
	FailNote        orNull         `json:"failNote"`        // the words of checkers that could not test it, a line each
	CreditsRefunded domain.Credits `json:"creditsRefunded"` // what came back
	CreditsExpired  domain.Credits `json:"creditsExpired"`  // what went into expired lots
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

// questionAskedData never names the checker.
type questionAskedData struct {
	common
	QuestionID string `json:"questionId"`
	ItemID     orNull `json:"itemId"` // null: about the whole test
	Kind       string `json:"kind"`
	Text       string `json:"text"`
	AskedAt    string `json:"askedAt"`
	Until      string `json:"until"`
}

// questionAnsweredData says whether a secret came with the answer; it never holds the
// secret.
type questionAnsweredData struct {
	common
	QuestionID string `json:"questionId"`
	Answer     string `json:"answer"`
	HasSecret  bool   `json:"hasSecret"`
	AnsweredAt string `json:"answeredAt"`
	DueAt      string `json:"dueAt"`
}

// disputeData tells of a dispute, its answer or its decision, each with its own fields. It
// never names the checker.
type disputeData struct {
	common
	DisputeID   string         `json:"disputeId"`
	ItemID      string         `json:"itemId"`
	At          string         `json:"at"`
	Verdict     job.ItemStatus `json:"verdict,omitempty"`
	Reason      string         `json:"reason,omitempty"`
	AnswerUntil string         `json:"answerUntil,omitempty"`
	Answer      string         `json:"answer,omitempty"`
	Decision    job.Ruling     `json:"decision,omitempty"`
	// Figures are those of the report after the decision.
	*figures
}

type figures struct {
	OverallStatus   string         `json:"overallStatus"`
	PassCount       int            `json:"passCount"`
	FailCount       int            `json:"failCount"`
	SkipCount       int            `json:"skipCount"`
	CreditsRefunded domain.Credits `json:"creditsRefunded"`
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

func created(s subject, e *job.Created) any {
	return createdData{
		common: s.job(job.StatusPending), CreatedAt: stamp(e.CreatedAt), SLAMinutes: e.SLAMinutes,
		CreditsDeducted: e.Price, ChecklistItemCount: len(e.Items), Source: e.Source,
	}
}

func claimed(s subject, e *job.Claimed) any {
	return claimedData{common: s.job(job.StatusClaimed), ClaimedAt: stamp(e.At)}
}

func slaMissed(s subject, e *job.SLAMissed) any {
	status := job.StatusFailed
	if e.Requeued {
		status = job.StatusPending
	}
	return slaData{
		common: s.job(status), SLAMinutes: s.SLAMinutes, RequeueCount: e.RequeueCount, Requeued: e.Requeued,
		CreditsRefunded: e.Refund - e.RefundExpired, CreditsExpired: e.RefundExpired,
	}
}

func cancelled(s subject, e *job.Cancelled) any {
	return cancelledData{
		common: s.job(job.StatusCancelled), CancelledAt: stamp(e.At), Reason: e.Reason,
		CreditsRefunded: e.Refund - e.RefundExpired, CreditsExpired: e.RefundExpired,
	}
}

func failed(s subject, e *job.Failed) any {
	return failedData{
		common: s.job(job.StatusFailed), FailedAt: stamp(e.At), Reason: e.Reason, FailNote: orNull(e.Note),
		CreditsRefunded: e.Refund - e.RefundExpired, CreditsExpired: e.RefundExpired,
	}
}

func questionAsked(s subject, e *job.QuestionAsked) any {
	return questionAskedData{
		common: s.job(job.StatusClaimed), QuestionID: e.QuestionID, ItemID: orNull(e.ItemID), Kind: e.Kind, Text: e.Text,
		AskedAt: stamp(e.At), Until: stamp(e.Until),
	}
}

func questionAnswered(s subject, e *job.AnswerGiven) any {
	return questionAnsweredData{
		common: s.job(job.StatusClaimed), QuestionID: e.QuestionID, Answer: e.Text, HasSecret: e.Sealed != "",
		AnsweredAt: stamp(e.At), DueAt: stamp(e.DueAt),
	}
}

func disputed(s subject, e *job.Disputed) any {
	return disputeData{
		common: s.job(job.StatusCompleted), DisputeID: e.DisputeID, ItemID: e.ItemID, At: stamp(e.At),
		Verdict: e.Verdict, Reason: e.Reason, AnswerUntil: stamp(e.AnswerUntil),
	}
}

func disputeAnswered(s subject, e *job.DisputeAnswered) any {
	return disputeData{common: s.job(job.StatusCompleted), DisputeID: e.DisputeID, ItemID: e.ItemID, At: stamp(e.At), Answer: e.Text}
}

func disputeDecided(s subject, e *job.DisputeDecided) any {
	return disputeData{
		common: s.job(job.StatusCompleted), DisputeID: e.DisputeID, ItemID: e.ItemID, At: stamp(e.At), Decision: e.Decision,
		figures: &figures{e.OverallStatus, e.PassCount, e.FailCount, e.SkipCount, e.Refund},
	}
}

func aiReportReady(s subject, e *job.AIReportReady) any {
	return aiReportData{common: s.job(job.StatusCompleted), ReportID: s.ReportID, AIReport: analysis(e.AIReport)}
}

func completed(s subject, e *job.Completed) any {
	d := completedData{
		common: s.job(job.StatusCompleted), ReportID: e.ReportID, OverallStatus: e.OverallStatus,
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

// Told reduces the event to the fields that its announcement, or a page of announcements,
// shows. A store of announced events needs no more. It never holds secrets, not even sealed.
func Told(e domain.Event) domain.Event {
	switch e := e.(type) {
	case *job.Created: // the Enrichment holds the submission
		return &job.Created{
			Submission: job.Submission{SLAMinutes: e.SLAMinutes, Price: e.Price, Source: e.Source},
			Items:      make([]job.Item, len(e.Items)), CreatedAt: e.CreatedAt,
		}
	case *job.Claimed: // no announcement names the checker
		return &job.Claimed{At: e.At}
	case *job.Completed:
		told := *e
		told.RecordingURL, told.SessionID, told.LoopID = "", "", ""
		told.Items = make([]job.ReportItem, len(e.Items))
		for i, item := range e.Items {
			told.Items[i] = job.ReportItem{
				Item:   job.Item{Description: item.Description, Severity: item.Severity},
				Status: item.Status, Note: item.Note,
			}
		}
		return &told
	case *job.QuestionAsked: // the rest of a robot's work is its own
		told := *e
		told.Then = nil
		return &told
	case *job.AnswerGiven:
		told := *e
		if told.Sealed != "" {
			told.Sealed = withSecret
		}
		return &told
	case *job.AIReportReady:
		told := *e
		told.Bugs = make([]job.Bug, len(e.Bugs))
		for i, bug := range e.Bugs {
			told.Bugs[i] = job.Bug{Title: bug.Title, Severity: bug.Severity, SuggestedFix: bug.SuggestedFix}
		}
		return &told
	}
	return e
}

// withSecret stands for the sealed secret of an answer.
const withSecret = "given"
