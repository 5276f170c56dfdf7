// Package announce is the catalogue of public events. It lists the announced events of
// the log, their public names, the names that a project's list may hold, and the
// payloads. Webhooks and the feed of events both render from it, so they agree.
//
// A new announcement is one line of a table and its payload: job.go, session.go,
// loop.go and account.go.
package announce

import (
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/subscription"
)

// learned is the Enrichment's revision. Raise it when Learn takes more from old events.
const learned = 3

// Revision is the revision of the catalogue and the Enrichment. It rises when Learn takes
// more from old events. It also rises with each new announcement, since the log may
// already hold its events. The feed is built anew then.
func Revision() int { return learned + len(catalogue) }

// Kind is one kind of announcement.
type Kind struct {
	// Name is public: subscriptions, the header X-Service-Event and the body
	// show it.
	Name string
	// Type is the event's name in the log.
	Type string
	// Subscribable kinds may be named by a project's list. The others are sent
	// only where no list was given (decisions, "Unnamed events").
	Subscribable bool
	// Nameable kinds are beyond the specification: a list may name them, and they are sent
	// where no list was given.
	Nameable bool
	// Listed kinds are sent only where a list names them.
	Listed bool
	// OfAccount kinds are sent only where a list names them, whichever project of the
	// account they are about.
	OfAccount bool
	// Reported kinds show the report's id, which an earlier event has.
	Reported bool

	// holds narrows the kind to some events of the type; nil: all.
	holds func(domain.Event) bool
	data  func(subject, domain.Event) any
}

// kind describes the announcement of the events of Go type E.
func kind[E domain.Event](name string, data func(subject, E) any) Kind {
	var e E
	return Kind{
		Name: name, Type: e.EventType(),
		Subscribable: slices.Contains(subscription.Specified(), name),
		Nameable:     slices.Contains(subscription.Questions(), name),
		Listed:       slices.Contains(subscription.Disputes(), name),
		OfAccount:    slices.Contains(subscription.OfAccount(), name),
		data:         func(s subject, e domain.Event) any { return data(s, e.(E)) },
	}
}

// where narrows a kind to some events of its type.
func where[E domain.Event](holds func(E) bool, k Kind) Kind {
	k.holds = func(e domain.Event) bool { return holds(e.(E)) }
	return k
}

// reported says that a kind shows the report's id.
func reported(k Kind) Kind {
	k.Reported = true
	return k
}

var (
	catalogue = slices.Concat(jobKinds, sessionKinds, loopKinds, accountKinds)
	byType    = func() map[string]Kind {
		kinds := make(map[string]Kind, len(catalogue))
		for _, k := range catalogue {
			kinds[k.Type] = k
		}
		return kinds
	}()
)

// Kinds lists everything that is announced.
func Kinds() []Kind { return slices.Clone(catalogue) }

// Choices lists the names that a project chooses its events from.
func Choices() []string {
	return slices.Concat(subscription.Specified(), subscription.Questions(), subscription.Disputes())
}

// Of gives the kind under which an event is announced; announced is false for events
// that are not public.
func Of(e domain.Event) (k Kind, announced bool) {
	if e == nil {
		return Kind{}, false
	}
	k, known := byType[e.EventType()]
	if !known || k.holds != nil && !k.holds(e) {
		return Kind{}, false
	}
	return k, true
}

// envelope is the body of an announcement (specification, "Delivery envelope"). An
// announcement that is not about a job has no jobId and no dashboardReportUrl.
type envelope struct {
	Event              string `json:"event"`
	Type               string `json:"type"`
	Timestamp          string `json:"timestamp"`
	ProjectID          orNull `json:"projectId"`
	JobID              string `json:"jobId,omitempty"`
	DashboardReportURL string `json:"dashboardReportUrl,omitempty"`
	Data               any    `json:"data"`
}

// orNull is null in JSON if it is empty. So is a project's id: a feed also has jobs without one.
type orNull string

// MarshalJSON implements json.Marshaler.
func (s orNull) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return domain.EncodeJSON(string(s))
}

// subject is what an announcement is about: the job, session, loop, project or
// account of that id.
type subject struct {
	Enrichment
	id      string
	baseURL string
}

// Render gives the bytes that announce an event. The same event and enrichment always
// give the same bytes. For events without a Kind announced is false, and there is no
// other result. After an error no repeat can succeed.
func Render(baseURL string, r domain.Recorded, about Enrichment) (body []byte, announced bool, err error) {
	k, announced := Of(r.Event)
	if !announced {
		return nil, false, nil
	}
	_, id, _ := strings.Cut(r.Stream, "-")
	out := envelope{
		Event: k.Name, Type: k.Name, Timestamp: stamp(r.Meta.Time), ProjectID: orNull(about.ProjectID),
		Data: k.data(subject{Enrichment: about, id: id, baseURL: baseURL}, r.Event),
	}
	if strings.HasPrefix(r.Stream, domain.ProjectStreams) {
		out.ProjectID = orNull(id)
	}
	if strings.HasPrefix(r.Stream, domain.JobStreams) {
		out.JobID, out.DashboardReportURL = id, ReportPage(baseURL, id)
	}
	body, err = domain.EncodeJSON(out)
	return body, true, err
}

// ReportPage is the dashboard's page of a job.
func ReportPage(baseURL, jobID string) string { return baseURL + "/dashboard/jobs/" + jobID }

// BatchPage is the dashboard's page of a batch.
func BatchPage(baseURL, batchID string) string { return baseURL + "/dashboard/batches/" + batchID }

// SessionPage is the dashboard's page of a session.
func SessionPage(baseURL, sessionID string) string {
	return baseURL + "/dashboard/sessions/" + sessionID
}

// stamp writes a time as the API does: UTC, milliseconds, Z.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
