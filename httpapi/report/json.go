package report

import (
	"humanqa/domain/job"
	"humanqa/domain/retention"
	"humanqa/httpapi/wire"
)

// Body is a report in JSON.
type Body struct {
	ID             string         `json:"id"`
	JobID          string         `json:"jobId"`
	ProjectID      *string        `json:"projectId"`
	OverallStatus  string         `json:"overallStatus"`
	PassCount      int            `json:"passCount"`
	FailCount      int            `json:"failCount"`
	SkipCount      int            `json:"skipCount"`
	CheckerSummary string         `json:"checkerSummary"`
	Items          []item         `json:"items"`
	RecordingURL   *string        `json:"recordingUrl"`
	Recordings     []recording    `json:"recordings,omitempty"`
	Questions      []Question     `json:"questions,omitempty"`
	Disputes       []Dispute      `json:"disputes,omitempty"`
	NoLongerKept   []gone         `json:"noLongerKept,omitempty"`
	CheckerRating  *int           `json:"checkerRating"`
	CreatedAt      wire.Timestamp `json:"createdAt"`
	AsOf           *string        `json:"asOf,omitempty"`
}

// Question is a checker's question to the client, and its answer. A secret that came with
// the answer is never shown here.
type Question struct {
	ID         string          `json:"id"`
	ItemID     *string         `json:"itemId"` // null: about the whole test
	Kind       string          `json:"kind"`
	Text       string          `json:"text"`
	Status     string          `json:"status"` // open, answered, unanswered, claim_ended
	AskedAt    wire.Timestamp  `json:"askedAt"`
	Until      wire.Timestamp  `json:"until"` // the end of its wait
	Answer     *string         `json:"answer"`
	HasSecret  bool            `json:"hasSecret"`
	AnsweredAt *wire.Timestamp `json:"answeredAt"`
}

// QuestionOf shows a question.
func QuestionOf(q job.Question) Question {
	shown := Question{
		ID: q.ID, ItemID: wire.OrNull(q.ItemID), Kind: q.Kind, Text: q.Text, Status: q.Status,
		AskedAt: wire.Timestamp(q.AskedAt), Until: wire.Timestamp(q.Until), HasSecret: q.HasSecret,
	}
	if q.Status == job.QuestionAnswered {
		shown.Answer, shown.AnsweredAt = &q.Answer, wire.Stamp(&q.ClosedAt)
	}
	return shown
}

// gone is a piece of evidence that is kept no longer.
type gone struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	ContentType string         `json:"contentType"`
	Size        int64          `json:"size"`
	Recording   bool           `json:"recording"`
	GoneAt      wire.Timestamp `json:"goneAt"`
	Reason      string         `json:"reason"`
}

// recording is a recording in a report.
type recording struct {
	ID          string         `json:"id"`
	URL         string         `json:"url"`
	ContentType string         `json:"contentType"`
	Size        int64          `json:"size"`
	StartedAt   wire.Timestamp `json:"startedAt"`
	DurationMs  *int64         `json:"durationMs"`
}

func recordingOf(r job.Recording) recording {
	shown := recording{ID: r.ID, URL: r.URL, ContentType: r.ContentType, Size: r.Size, StartedAt: wire.Timestamp(r.StartedAt)}
	if r.DurationMs > 0 {
		shown.DurationMs = &r.DurationMs
	}
	return shown
}

type item struct {
	ID              string         `json:"id"`
	Key             string         `json:"key"`
	Description     string         `json:"description"`
	ExpectedOutcome string         `json:"expectedOutcome,omitempty"`
	Severity        job.Severity   `json:"severity"`
	Status          job.ItemStatus `json:"status"`
	CheckerNote     string         `json:"checkerNote"`
	SkipReason      string         `json:"skipReason,omitempty"`
	ScreenshotURL   string         `json:"screenshotUrl,omitempty"`
	ScreenshotURLs  []string       `json:"screenshotUrls,omitempty"` // all, where there are several
}

// Joined is the reports of several jobs in JSON.
type Joined struct {
	BatchID string `json:"batchId,omitempty"` // empty: they are of no one batch
	Reports []Body `json:"reports"`
	// WithoutReport are the jobs of a batch that ended without one; nil: it is no batch.
	WithoutReport []Unreported `json:"withoutReport,omitzero"`
	AsOf          *string      `json:"asOf,omitempty"`
}

// Unreported is a job that ended without a report.
type Unreported struct {
	JobID  string     `json:"jobId"`
	Status job.Status `json:"status"`
}

// JSON is the report's body in JSON; the job has one.
func (t Job) JSON() Body {
	report := t.Report
	return Body{
		ID: report.ID, JobID: report.JobID, ProjectID: wire.OrNull(t.ProjectID), OverallStatus: report.OverallStatus,
		PassCount: report.PassCount, FailCount: report.FailCount, SkipCount: report.SkipCount,
		CheckerSummary: report.Summary, RecordingURL: wire.OrNull(report.RecordingURL),
		CheckerRating: report.CheckerRating, CreatedAt: wire.Timestamp(report.CreatedAt),
		Recordings: wire.List(report.Recordings, recordingOf), Disputes: wire.List(report.Disputes, DisputeOf),
		Questions: wire.List(report.Questions, QuestionOf), NoLongerKept: wire.List(t.Gone, goneOf), Items: wire.List(report.Items, itemOf),
	}
}

func goneOf(g retention.Gone) gone {
	return gone{
		ID: g.ID, Name: g.Name, ContentType: g.ContentType, Size: g.Size, Recording: g.Recording,
		GoneAt: wire.Timestamp(g.At), Reason: g.Why,
	}
}

func itemOf(i job.ReportItem) item {
	return item{
		ID: i.ID, Key: i.Key, Description: i.Description, ExpectedOutcome: i.ExpectedOutcome,
		Severity: i.Severity, Status: i.Status, CheckerNote: i.Note,
		SkipReason: i.Reason, ScreenshotURL: i.ScreenshotURL, ScreenshotURLs: SeveralScreenshots(i),
	}
}

// SeveralScreenshots are the item's pictures, where there is more than one.
func SeveralScreenshots(i job.ReportItem) []string {
	if len(i.MoreScreenshotURLs) == 0 {
		return nil
	}
	return i.Screenshots()
}
