package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"
)

// audience says whose credential a route wants.
type audience int

const (
	public   audience = iota // none
	clients                  // an API key
	checkers                 // a checker key
	hooks                    // the token in the path
)

// route is one row of the table.
type route struct {
	method   string
	pattern  string
	audience audience
	// write routes refuse read-only keys.
	write bool
	// creates marks what charges or creates: Idempotency-Key is honoured there,
	// but for claims, whose answer holds credentials and is stored nowhere.
	creates bool
	// submits marks what takes a test, or checks one: its answer warns of fields
	// that look like slips.
	submits bool
	// upload routes take files: their bodies are not brought into memory.
	upload bool
	// past routes show state, and take ?asOf= (decisions, "asOf").
	past   bool
	handle func(*API, *request) (answer, error)
}

// Every route of the service. The first pattern that matches wins, so literal
// segments stand before variables.
var routes = []route{
	{method: "POST", pattern: "/v1/jobs", audience: clients, write: true, creates: true, submits: true, handle: (*API).submitJob},
	{method: "GET", pattern: "/v1/jobs", audience: clients, past: true, handle: (*API).listJobs},
	{method: "POST", pattern: "/v1/jobs/bulk", audience: clients, write: true, creates: true, submits: true, handle: (*API).submitBulk},
	{method: "GET", pattern: "/v1/jobs/bulk/{batchId}", audience: clients, past: true, handle: (*API).getBatch},
	{method: "GET", pattern: "/v1/jobs/bulk/{batchId}/report", audience: clients, past: true, handle: (*API).getBatchReport},
	{method: "GET", pattern: "/v1/jobs/{id}", audience: clients, past: true, handle: (*API).getJob},
	{method: "GET", pattern: "/v1/jobs/{id}/report", audience: clients, past: true, handle: (*API).getReport},
	{method: "GET", pattern: "/v1/jobs/{id}/ai-report", audience: clients, past: true, handle: (*API).getAIReport},
	{method: "GET", pattern: "/v1/jobs/{id}/events", audience: clients, handle: (*API).jobEvents},
	{method: "POST", pattern: "/v1/jobs/{id}/cancel", audience: clients, write: true, handle: (*API).cancelJob},
	{method: "POST", pattern: "/v1/jobs/{id}/retest", audience: clients, write: true, creates: true, handle: (*API).retestJob},
	{method: "POST", pattern: "/v1/jobs/{id}/rating", audience: clients, write: true, handle: (*API).rateJob},
	{method: "POST", pattern: "/v1/estimate", audience: clients, submits: true, handle: (*API).estimateJob},

	{method: "POST", pattern: "/v1/hosted/test", audience: clients, write: true, creates: true, submits: true, handle: (*API).testHosted},
	{method: "GET", pattern: "/v1/hosted/status/{jobId}", audience: clients, past: true, handle: (*API).hostedStatus},
	{method: "POST", pattern: "/v1/hosted/prepare-next", audience: clients, write: true, creates: true, handle: (*API).prepareNext},
	{method: "POST", pattern: "/v1/hosted/sessions", audience: clients, write: true, creates: true, submits: true, handle: (*API).createSession},
	{method: "GET", pattern: "/v1/hosted/sessions", audience: clients, past: true, handle: (*API).listSessions},
	{method: "GET", pattern: "/v1/hosted/sessions/{id}", audience: clients, past: true, handle: (*API).getSession},
	{method: "POST", pattern: "/v1/hosted/sessions/{id}/cancel", audience: clients, write: true, handle: (*API).cancelSession},
	{method: "POST", pattern: "/v1/hooks/deploy/{token}", audience: hooks, write: true, creates: true, submits: true, handle: (*API).deployHook},
	{method: "GET", pattern: "/v1/loop-sessions/{id}", audience: clients, handle: (*API).getLoop},
	{method: "POST", pattern: "/v1/loop-sessions/{id}/finalize", audience: clients, write: true, handle: (*API).finalizeLoop},
	{method: "GET", pattern: "/v1/events", audience: clients, handle: (*API).accountEvents},

	{method: "GET", pattern: "/v1/projects", audience: clients, past: true, handle: (*API).listProjects},
	{method: "POST", pattern: "/v1/projects", audience: clients, write: true, creates: true, handle: (*API).createProject},
	{method: "GET", pattern: "/v1/projects/{id}", audience: clients, past: true, handle: (*API).getProject},
	{method: "PATCH", pattern: "/v1/projects/{id}", audience: clients, write: true, handle: (*API).updateProject},
	{method: "POST", pattern: "/v1/projects/{id}/webhook/enable", audience: clients, write: true, handle: (*API).enableWebhook},
	{method: "POST", pattern: "/v1/projects/{id}/webhook/test", audience: clients, write: true, creates: true, handle: (*API).testWebhook},
	{method: "POST", pattern: "/v1/projects/{id}/webhook/rotate-secret", audience: clients, write: true, creates: true, handle: (*API).rotateSecret},
	{method: "POST", pattern: "/v1/projects/{id}/webhook/replay", audience: clients, write: true, handle: (*API).replayDeliveries},
	{method: "POST", pattern: "/v1/projects/{id}/webhook/drop", audience: clients, write: true, handle: (*API).dropDeliveries},
	{method: "GET", pattern: "/v1/projects/{id}/deliveries", audience: clients, handle: (*API).listDeliveries},
	{method: "GET", pattern: "/v1/projects/{id}/deliveries/{deliveryId}", audience: clients, handle: (*API).getDelivery},
	{method: "POST", pattern: "/v1/projects/{id}/deliveries/{deliveryId}/redeliver", audience: clients, write: true, creates: true, handle: (*API).redeliver},

	{method: "GET", pattern: "/v1/projects/{id}/history", audience: clients, past: true, handle: (*API).projectHistory},
	{method: "GET", pattern: "/v1/projects/{id}/open-failures", audience: clients, handle: (*API).openFailures},

	{method: "GET", pattern: "/v1/credits", audience: clients, past: true, handle: (*API).getCredits},
	{method: "GET", pattern: "/v1/credits/ledger", audience: clients, past: true, handle: (*API).creditsLedger},
	{method: "GET", pattern: "/v1/credits/statement", audience: clients, past: true, handle: (*API).creditsStatement},
	{method: "GET", pattern: "/v1/exports/events", audience: clients, past: true, handle: (*API).exportEvents},
	{method: "GET", pattern: "/v1/exports/{table}", audience: clients, past: true, handle: (*API).getExport},
	{method: "GET", pattern: "/v1/analytics/pass-rate", audience: clients, past: true, handle: (*API).getPassRates},
	{method: "GET", pattern: "/v1/pricing", audience: clients, handle: (*API).getPricing},
	{method: "GET", pattern: "/v1/audit/checkpoint", audience: clients, handle: (*API).getCheckpoint},
	{method: "GET", pattern: "/v1/audit/proof", audience: clients, handle: (*API).getProof},

	{method: "GET", pattern: "/v1/checker/queue", audience: checkers, handle: (*API).checkerQueue},
	{method: "GET", pattern: "/v1/checker/claims", audience: checkers, handle: (*API).liveClaim},
	{method: "POST", pattern: "/v1/checker/claims", audience: checkers, write: true, handle: (*API).claimJob},
	{method: "PUT", pattern: "/v1/checker/jobs/{id}/items/{itemId}", audience: checkers, write: true, handle: (*API).checkItem},
	{method: "POST", pattern: "/v1/checker/jobs/{id}/items", audience: checkers, write: true, creates: true, handle: (*API).addFinding},
	{method: "GET", pattern: "/v1/checker/jobs/{id}/open-failures", audience: checkers, handle: (*API).knownFailures},
	{method: "POST", pattern: "/v1/checker/jobs/{id}/evidence", audience: checkers, write: true, upload: true, handle: (*API).uploadEvidence},
	{method: "POST", pattern: "/v1/checker/jobs/{id}/recordings", audience: checkers, write: true, creates: true, handle: (*API).createRecording},
	{method: "PATCH", pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}", audience: checkers, write: true, upload: true, handle: (*API).appendRecording},
	{method: "GET", pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}", audience: checkers, handle: (*API).getRecording},
	{method: "HEAD", pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}", audience: checkers, handle: (*API).getRecording},
	{method: "POST", pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}/finish", audience: checkers, write: true, handle: (*API).finishRecording},
	{method: "POST", pattern: "/v1/checker/jobs/{id}/complete", audience: checkers, write: true, handle: (*API).completeJob},
	{method: "POST", pattern: "/v1/checker/jobs/{id}/release", audience: checkers, write: true, handle: (*API).releaseJob},
	{method: "POST", pattern: "/v1/checker/jobs/{id}/untestable", audience: checkers, write: true, handle: (*API).reportUntestable},
	{method: "POST", pattern: "/v1/checker/jobs/{id}/heartbeat", audience: checkers, write: true, handle: (*API).heartbeat},
	{method: "GET", pattern: "/v1/checker/sessions/{id}", audience: checkers, handle: (*API).checkerSession},
	{method: "POST", pattern: "/v1/checker/sessions/{id}/ready", audience: checkers, write: true, handle: (*API).sessionReady},
	{method: "POST", pattern: "/v1/checker/sessions/{id}/leave", audience: checkers, write: true, handle: (*API).sessionLeave},

	{method: "POST", pattern: "/v1/sandbox/clock/advance", audience: clients, write: true, creates: true, handle: (*API).advanceClock},
	{method: "POST", pattern: "/v1/sandbox/jobs/{id}/play", audience: clients, write: true, handle: (*API).playJob},
	{method: "POST", pattern: "/v1/sandbox/sessions/{id}/ready", audience: clients, write: true, handle: (*API).readySlots},

	{method: "GET", pattern: "/v1/evidence/{id}", audience: public, handle: (*API).getEvidence},
	{method: "GET", pattern: "/v1/openapi.json", audience: public, handle: (*API).openAPI},
	{method: "GET", pattern: "/v1/openapi-3.1.json", audience: public, handle: (*API).openAPI31},
	{method: "GET", pattern: "/docs", audience: public, handle: (*API).docs},
	{method: "GET", pattern: "/docs/{file}", audience: public, handle: (*API).docsFile},
	{method: "GET", pattern: "/healthz", audience: public, handle: (*API).healthz},
	{method: "HEAD", pattern: "/healthz", audience: public, handle: (*API).healthz},
	{method: "GET", pattern: "/readyz", audience: public, handle: (*API).readyz},
	{method: "HEAD", pattern: "/readyz", audience: public, handle: (*API).readyz},
}

// table finds routes. mux matches the path, the method is looked up here, so
// that a wrong method knows its path's row and its Allow header.
type table struct {
	paths    *mux.Router
	patterns map[string]map[string]*route // by pattern, then method
	past     []string                     // the patterns of the reads that take ?asOf=
}

func newTable(rows []route) table {
	t := table{
		// The path is matched as it was sent: an encoded slash is not a
		// separator, and nothing is cleaned into a redirect.
		paths:    mux.NewRouter().UseEncodedPath().SkipClean(true),
		patterns: make(map[string]map[string]*route),
	}
	for i := range rows {
		row := &rows[i]
		if t.patterns[row.pattern] == nil {
			t.patterns[row.pattern] = make(map[string]*route)
			t.paths.Path(row.pattern).Name(row.pattern)
		}
		t.patterns[row.pattern][row.method] = row
		if row.past {
			t.past = append(t.past, row.pattern)
		}
	}
	return t
}

// match is where a request leads: no pattern (404), a pattern without a route
// for the method (405, allow lists the methods), or a route.
type match struct {
	pattern  string
	route    *route
	audience audience
	allow    string
	vars     map[string]string
}

func (t table) find(r *http.Request) match {
	var found mux.RouteMatch
	if !t.paths.Match(r, &found) || found.Route == nil {
		return match{audience: audienceOf(r.URL.Path)}
	}
	vars := make(map[string]string, len(found.Vars))
	for name, raw := range found.Vars {
		value, err := url.PathUnescape(raw)
		if err != nil {
			return match{audience: audienceOf(r.URL.Path)}
		}
		vars[name] = value
	}
	methods := t.patterns[found.Route.GetName()]
	m := match{pattern: found.Route.GetName(), route: methods[r.Method], vars: vars}
	if m.route != nil {
		m.audience = m.route.audience
		return m
	}
	var allow []string
	for method, row := range methods {
		allow = append(allow, method)
		m.audience = row.audience
	}
	slices.Sort(allow)
	m.allow = strings.Join(allow, ", ")
	return m
}

// audienceOf keeps the order of checks on paths that lead nowhere: under /v1 a
// credential is asked for before a path is denied.
func audienceOf(path string) audience {
	switch {
	case path == "/v1/checker" || strings.HasPrefix(path, "/v1/checker/"):
		return checkers
	case path == "/v1/openapi.json" || path == "/v1/openapi-3.1.json" || strings.HasPrefix(path, evidencePath):
		return public
	case strings.HasPrefix(path, "/v1/hooks/"):
		return hooks
	case path == "/v1" || strings.HasPrefix(path, "/v1/"):
		return clients
	}
	return public
}
