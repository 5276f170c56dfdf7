package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"humanqa/httpapi/evidence"
	"humanqa/httpapi/openapi"
	"humanqa/httpapi/wire"
)

// routesOf is every route of the service. The first pattern that matches wins, so literal
// segments stand before variables.
func routesOf(a *API) []wire.Route {
	c, k := a.clients, a.checkers
	return []wire.Route{
		{Method: "POST", Pattern: "/v1/jobs", Audience: wire.Clients, Write: true, Creates: true, Submits: true, Handle: c.SubmitJob},
		{Method: "GET", Pattern: "/v1/jobs", Audience: wire.Clients, Past: true, Handle: c.ListJobs},
		{Method: "POST", Pattern: "/v1/jobs/bulk", Audience: wire.Clients, Write: true, Creates: true, Submits: true, Handle: c.SubmitBulk},
		{Method: "GET", Pattern: "/v1/jobs/bulk/{batchId}", Audience: wire.Clients, Past: true, Handle: c.GetBatch},
		{Method: "GET", Pattern: "/v1/jobs/bulk/{batchId}/report", Audience: wire.Clients, Past: true, Handle: c.GetBatchReport},
		{Method: "GET", Pattern: "/v1/jobs/{id}", Audience: wire.Clients, Past: true, Handle: c.GetJob},
		{Method: "GET", Pattern: "/v1/jobs/{id}/report", Audience: wire.Clients, Past: true, Handle: c.GetReport},
		{Method: "GET", Pattern: "/v1/jobs/{id}/ai-report", Audience: wire.Clients, Past: true, Handle: c.GetAIReport},
		{Method: "GET", Pattern: "/v1/jobs/{id}/events", Audience: wire.Clients, Handle: c.JobEvents},
		{Method: "POST", Pattern: "/v1/jobs/{id}/cancel", Audience: wire.Clients, Write: true, Handle: c.CancelJob},
		{Method: "POST", Pattern: "/v1/jobs/{id}/retest", Audience: wire.Clients, Write: true, Creates: true, Handle: c.RetestJob},
		{Method: "POST", Pattern: "/v1/jobs/{id}/rating", Audience: wire.Clients, Write: true, Handle: c.RateJob},
		{Method: "GET", Pattern: "/v1/jobs/{id}/questions", Audience: wire.Clients, Past: true, Handle: c.ListQuestions},
		{Method: "POST", Pattern: "/v1/jobs/{id}/questions/{questionId}/answer", Audience: wire.Clients, Write: true, Creates: true, Handle: c.AnswerQuestion},
		{Method: "POST", Pattern: "/v1/estimate", Audience: wire.Clients, Submits: true, Handle: c.EstimateJob},

		{Method: "POST", Pattern: "/v1/hosted/test", Audience: wire.Clients, Write: true, Creates: true, Submits: true, Handle: c.TestHosted},
		{Method: "GET", Pattern: "/v1/hosted/status/{jobId}", Audience: wire.Clients, Past: true, Handle: c.HostedStatus},
		{Method: "POST", Pattern: "/v1/hosted/prepare-next", Audience: wire.Clients, Write: true, Creates: true, Handle: c.PrepareNext},
		{Method: "POST", Pattern: "/v1/hosted/sessions", Audience: wire.Clients, Write: true, Creates: true, Submits: true, Handle: c.CreateSession},
		{Method: "GET", Pattern: "/v1/hosted/sessions", Audience: wire.Clients, Past: true, Handle: c.ListSessions},
		{Method: "GET", Pattern: "/v1/hosted/sessions/{id}", Audience: wire.Clients, Past: true, Handle: c.GetSession},
		{Method: "POST", Pattern: "/v1/hosted/sessions/{id}/cancel", Audience: wire.Clients, Write: true, Handle: c.CancelSession},
		{Method: "POST", Pattern: "/v1/hooks/deploy/{token}", Audience: wire.Hooks, Write: true, Creates: true, Submits: true, Handle: c.DeployHook},
		{Method: "GET", Pattern: "/v1/loop-sessions/{id}", Audience: wire.Clients, Handle: c.GetLoop},
		{Method: "POST", Pattern: "/v1/loop-sessions/{id}/finalize", Audience: wire.Clients, Write: true, Handle: c.FinalizeLoop},
		{Method: "GET", Pattern: "/v1/events", Audience: wire.Clients, Handle: c.AccountEvents},
		{Method: "GET", Pattern: "/v1/events/readers", Audience: wire.Clients, Handle: c.ListReaders},
		{Method: "POST", Pattern: "/v1/events/readers/{name}/forget", Audience: wire.Clients, Write: true, Handle: c.ForgetReader},

		{Method: "GET", Pattern: "/v1/projects", Audience: wire.Clients, Past: true, Handle: c.ListProjects},
		{Method: "POST", Pattern: "/v1/projects", Audience: wire.Clients, Write: true, Creates: true, AllProjects: true, Handle: c.CreateProject},
		{Method: "GET", Pattern: "/v1/projects/{id}", Audience: wire.Clients, Past: true, Handle: c.GetProject},
		{Method: "PATCH", Pattern: "/v1/projects/{id}", Audience: wire.Clients, Write: true, Handle: c.UpdateProject},
		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/enable", Audience: wire.Clients, Write: true, Handle: c.EnableWebhook},
		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/test", Audience: wire.Clients, Write: true, Creates: true, Handle: c.TestWebhook},
		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/rotate-secret", Audience: wire.Clients, Write: true, Creates: true, Handle: c.RotateSecret},
		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/replay", Audience: wire.Clients, Write: true, Handle: c.ReplayDeliveries},
		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/drop", Audience: wire.Clients, Write: true, Handle: c.DropDeliveries},
		{Method: "GET", Pattern: "/v1/projects/{id}/deliveries", Audience: wire.Clients, Handle: c.ListDeliveries},
		{Method: "GET", Pattern: "/v1/projects/{id}/deliveries/{deliveryId}", Audience: wire.Clients, Handle: c.GetDelivery},
		{Method: "POST", Pattern: "/v1/projects/{id}/deliveries/{deliveryId}/redeliver", Audience: wire.Clients, Write: true, Creates: true, Handle: c.Redeliver},

		{Method: "GET", Pattern: "/v1/projects/{id}/history", Audience: wire.Clients, Past: true, Handle: c.ProjectHistory},
		{Method: "GET", Pattern: "/v1/projects/{id}/open-failures", Audience: wire.Clients, Handle: c.OpenFailures},

		{Method: "GET", Pattern: "/v1/evidence", Audience: wire.Clients, AllProjects: true, Handle: c.GetEvidence},
		{Method: "PATCH", Pattern: "/v1/evidence", Audience: wire.Clients, Write: true, AllProjects: true, Handle: c.UpdateEvidence},

		{Method: "GET", Pattern: "/v1/credits", Audience: wire.Clients, Past: true, Handle: c.GetCredits},
		{Method: "GET", Pattern: "/v1/credits/ledger", Audience: wire.Clients, Past: true, AllProjects: true, Handle: c.CreditsLedger},
		{Method: "GET", Pattern: "/v1/credits/statement", Audience: wire.Clients, Past: true, AllProjects: true, Handle: c.CreditsStatement},
		{Method: "GET", Pattern: "/v1/exports/events", Audience: wire.Clients, Past: true, AllProjects: true, Handle: c.ExportEvents},
		{Method: "GET", Pattern: "/v1/exports/{table}", Audience: wire.Clients, Past: true, AllProjects: true, Handle: c.GetExport},
		{Method: "GET", Pattern: "/v1/analytics/pass-rate", Audience: wire.Clients, Past: true, Handle: c.GetPassRates},
		{Method: "GET", Pattern: "/v1/pricing", Audience: wire.Clients, Handle: c.GetPricing},
		{Method: "GET", Pattern: "/v1/audit/checkpoint", Audience: wire.Clients, Handle: c.GetCheckpoint},
		{Method: "GET", Pattern: "/v1/audit/proof", Audience: wire.Clients, AllProjects: true, Handle: c.GetProof},

		{Method: "GET", Pattern: "/v1/checker/queue", Audience: wire.Checkers, Handle: k.CheckerQueue},
		{Method: "GET", Pattern: "/v1/checker/claims", Audience: wire.Checkers, Handle: k.LiveClaim},
		{Method: "POST", Pattern: "/v1/checker/claims", Audience: wire.Checkers, Write: true, Handle: k.ClaimJob},
		{Method: "PUT", Pattern: "/v1/checker/jobs/{id}/items/{itemId}", Audience: wire.Checkers, Write: true, Handle: k.CheckItem},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/items", Audience: wire.Checkers, Write: true, Creates: true, Handle: k.AddFinding},
		{Method: "PUT", Pattern: "/v1/checker/jobs/{id}/findings/{findingId}", Audience: wire.Checkers, Write: true, Handle: k.EditFinding},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/findings/{findingId}/withdraw", Audience: wire.Checkers, Write: true, Handle: k.WithdrawFinding},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/questions", Audience: wire.Checkers, Write: true, Creates: true, Handle: k.AskQuestion},
		{Method: "GET", Pattern: "/v1/checker/jobs/{id}/open-failures", Audience: wire.Checkers, Handle: k.KnownFailures},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/evidence", Audience: wire.Checkers, Write: true, Upload: true, Handle: k.UploadEvidence},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/recordings", Audience: wire.Checkers, Write: true, Creates: true, Handle: k.CreateRecording},
		{Method: "PATCH", Pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}", Audience: wire.Checkers, Write: true, Upload: true, Handle: k.AppendRecording},
		{Method: "GET", Pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}", Audience: wire.Checkers, Handle: k.GetRecording},
		{Method: "HEAD", Pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}", Audience: wire.Checkers, Handle: k.GetRecording},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}/finish", Audience: wire.Checkers, Write: true, Handle: k.FinishRecording},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/complete", Audience: wire.Checkers, Write: true, Handle: k.CompleteJob},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/release", Audience: wire.Checkers, Write: true, Handle: k.ReleaseJob},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/untestable", Audience: wire.Checkers, Write: true, Handle: k.ReportUntestable},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/heartbeat", Audience: wire.Checkers, Write: true, Handle: k.Heartbeat},
		{Method: "GET", Pattern: "/v1/checker/sessions/{id}", Audience: wire.Checkers, Handle: k.CheckerSession},
		{Method: "POST", Pattern: "/v1/checker/sessions/{id}/ready", Audience: wire.Checkers, Write: true, Handle: k.SessionReady},
		{Method: "POST", Pattern: "/v1/checker/sessions/{id}/leave", Audience: wire.Checkers, Write: true, Handle: k.SessionLeave},

		{Method: "POST", Pattern: "/v1/sandbox/clock/advance", Audience: wire.Clients, Write: true, Creates: true, Handle: c.AdvanceClock},
		{Method: "POST", Pattern: "/v1/sandbox/jobs/{id}/play", Audience: wire.Clients, Write: true, Handle: c.PlayJob},
		{Method: "POST", Pattern: "/v1/sandbox/sessions/{id}/ready", Audience: wire.Clients, Write: true, Handle: c.ReadySlots},

		{Method: "POST", Pattern: "/v1/device", Audience: wire.Public, Write: true, Handle: a.beginLogin},
		{Method: "POST", Pattern: "/v1/device/token", Audience: wire.Public, Write: true, Handle: a.collectLogin},
		{Method: "GET", Pattern: "/v1/evidence/{id}", Audience: wire.Public, Handle: a.Evidence.Answer},
		{Method: "GET", Pattern: "/v1/openapi.json", Audience: wire.Public, Handle: served(document30)},
		{Method: "GET", Pattern: "/v1/openapi-3.1.json", Audience: wire.Public, Handle: served(document31)},
		{Method: "GET", Pattern: "/docs", Audience: wire.Public, Handle: a.docs},
		{Method: "GET", Pattern: "/docs/{file}", Audience: wire.Public, Handle: a.docsFile},
		{Method: "GET", Pattern: "/llms.txt", Audience: wire.Public, Handle: a.llms},
		{Method: "GET", Pattern: "/llms-full.txt", Audience: wire.Public, Handle: served(openapi.LLMsFull)},
		{Method: "GET", Pattern: "/healthz", Audience: wire.Public, Handle: a.healthz},
		{Method: "HEAD", Pattern: "/healthz", Audience: wire.Public, Handle: a.healthz},
		{Method: "GET", Pattern: "/readyz", Audience: wire.Public, Handle: a.readyz},
		{Method: "HEAD", Pattern: "/readyz", Audience: wire.Public, Handle: a.readyz},
	}
}

// table finds routes. mux matches the path; the method is looked up here, so that a wrong
// method still finds its path's audience and Allow header.
type table struct {
	paths    *mux.Router
	patterns map[string]map[string]*wire.Route // by pattern, then method
	past     []string                          // the patterns of the reads that take ?asOf=
}

func newTable(rows []wire.Route) table {
	t := table{
		// The path is matched as it was sent: an encoded slash is not a
		// separator, and nothing is cleaned into a redirect.
		paths:    mux.NewRouter().UseEncodedPath().SkipClean(true),
		patterns: make(map[string]map[string]*wire.Route),
	}
	for i := range rows {
		row := &rows[i]
		if t.patterns[row.Pattern] == nil {
			t.patterns[row.Pattern] = make(map[string]*wire.Route)
			t.paths.Path(row.Pattern).Name(row.Pattern)
		}
		t.patterns[row.Pattern][row.Method] = row
		if row.Past {
			t.past = append(t.past, row.Pattern)
		}
	}
	return t
}

func (t table) find(r *http.Request) wire.Match {
	var found mux.RouteMatch
	if !t.paths.Match(r, &found) || found.Route == nil {
		return wire.Match{Audience: audienceOf(r.URL.Path)}
	}
	vars := make(map[string]string, len(found.Vars))
	for name, raw := range found.Vars {
		value, err := url.PathUnescape(raw)
		if err != nil {
			return wire.Match{Audience: audienceOf(r.URL.Path)}
		}
		vars[name] = value
	}
	methods := t.patterns[found.Route.GetName()]
	m := wire.Match{RoutePattern: found.Route.GetName(), Route: methods[r.Method], Vars: vars}
	if m.Route != nil {
		m.Audience = m.Route.Audience
		return m
	}
	var allow []string
	for method, row := range methods {
		allow = append(allow, method)
		m.Audience = row.Audience
	}
	slices.Sort(allow)
	m.Allow = strings.Join(allow, ", ")
	return m
}

// audienceOf keeps the order of checks on paths without a route: under /v1 the credential
// is checked before the path is refused.
func audienceOf(path string) wire.Audience {
	switch {
	case path == "/v1/checker" || strings.HasPrefix(path, "/v1/checker/"):
		return wire.Checkers
	case path == "/v1/device" || path == "/v1/device/token":
		return wire.Public
	case path == "/v1/openapi.json" || path == "/v1/openapi-3.1.json" || strings.HasPrefix(path, evidence.Prefix):
		return wire.Public
	case strings.HasPrefix(path, "/v1/hooks/"):
		return wire.Hooks
	case path == "/v1" || strings.HasPrefix(path, "/v1/"):
		return wire.Clients
	}
	return wire.Public
}
