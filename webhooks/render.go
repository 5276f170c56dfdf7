package webhooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/session"
)

// envelope is the body of a delivery (specification, "Delivery envelope").
// What is not about a job has no jobId and no dashboardReportUrl.
type envelope struct {
	Event              string    `json:"event"`
	Type               string    `json:"type"`
	Timestamp          string    `json:"timestamp"`
	ProjectID          projectID `json:"projectId"`
	JobID              string    `json:"jobId,omitempty"`
	DashboardReportURL string    `json:"dashboardReportUrl,omitempty"`
	Data               any       `json:"data"`
}

// projectID is null where there is none: a feed tells of such jobs, too.
type projectID string

// MarshalJSON implements json.Marshaler.
func (p projectID) MarshalJSON() ([]byte, error) {
	if p == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(p))
}

// Kind is the name under which an event of the log is announced: the one that
// subscriptions, the X-Service-Event header and the body show. It is empty for
// events that nobody outside hears of.
func Kind(e domain.Event) string {
	switch e := e.(type) {
	case *job.Created, *job.ClaimedBy, *job.SLAMissed, *job.CompletedWith, *job.AIReportReady, *job.CancelledBy,
		*job.FailedBy:
		return e.EventType()
	case *session.Started:
		return "job.session_ready"
	case *session.CompletedWith:
		return "job.session_completed"
	case *loop.Ended:
		if e.Alert {
			return e.EventType()
		}
	}
	return ""
}

// Render gives the bytes that announce an event, to a webhook or in a feed: the
// same event and facts always give the same ones. announced is false, and
// nothing else is given, for events without a Kind. An error means that no
// second try will do better.
func Render(baseURL string, r domain.Recorded, f Facts) (body []byte, announced bool, err error) {
	kind := Kind(r.Event)
	if kind == "" {
		return nil, false, nil
	}
	out := envelope{Event: kind, Type: kind, Timestamp: stamp(r.Meta.Time), ProjectID: projectID(f.ProjectID)}
	sessionID := strings.TrimPrefix(r.Stream, domain.SessionStreams)
	switch e := r.Event.(type) {
	case *session.Started:
		out.Data = startedSession(baseURL, sessionID, e, f)
	case *session.CompletedWith:
		out.Data = completedSession(baseURL, sessionID, e, f)
	case *loop.Ended:
		out.Data = endedLoop(e)
	default:
		out.JobID = strings.TrimPrefix(r.Stream, domain.JobStreams)
		out.DashboardReportURL = ReportPage(baseURL, out.JobID)
		out.Data = aboutJob(e, f.common(baseURL, out.JobID), f)
	}
	body, err = encode(out)
	return body, true, err
}

// ReportPage is the dashboard's page of a job.
func ReportPage(baseURL, jobID string) string { return baseURL + "/dashboard/jobs/" + jobID }

// SessionPage is the dashboard's page of a session.
func SessionPage(baseURL, sessionID string) string {
	return baseURL + "/dashboard/sessions/" + sessionID
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
