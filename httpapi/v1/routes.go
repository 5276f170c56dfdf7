package v1

import (
	"time"

	"humanqa/httpapi/wire"
)

// Routes are the routes of clients.
func (a *Handlers) Routes() []wire.Route {
	return []wire.Route{
		{Method: "POST", Pattern: "/v1/jobs", Audience: wire.Clients, Write: true, Creates: true, Buys: "api", Submits: true, Handle: a.submitJob},
		{Method: "GET", Pattern: "/v1/jobs", Audience: wire.Clients, Past: true, Handle: a.listJobs},
		{Method: "POST", Pattern: "/v1/jobs/bulk", Audience: wire.Clients, Write: true, Creates: true, Buys: "bulk", Submits: true, Handle: a.submitBulk},
		{Method: "GET", Pattern: "/v1/jobs/bulk/{batchId}", Audience: wire.Clients, Past: true, Handle: a.getBatch},
		{Method: "POST", Pattern: "/v1/jobs/bulk/{batchId}/cancel", Audience: wire.Clients, Write: true, Handle: a.cancelBatch},
		{Method: "POST", Pattern: "/v1/jobs/bulk/{batchId}/repeat", Audience: wire.Clients, Write: true, Creates: true, Buys: "bulk", Handle: a.repeatBatch},
		{Method: "GET", Pattern: "/v1/jobs/bulk/{batchId}/report", Audience: wire.Clients, Past: true, Handle: a.getBatchReport},
		{Method: "GET", Pattern: "/v1/jobs/report", Audience: wire.Clients, Past: true, Handle: a.getReports},
		{Method: "GET", Pattern: "/v1/jobs/{id}", Audience: wire.Clients, Past: true, Handle: a.getJob},
		{Method: "GET", Pattern: "/v1/jobs/{id}/report", Audience: wire.Clients, Past: true, Handle: a.getReport},
		{Method: "GET", Pattern: "/v1/jobs/{id}/ai-report", Audience: wire.Clients, Past: true, Handle: a.getAIReport},
		{Method: "GET", Pattern: "/v1/jobs/{id}/events", Audience: wire.Clients, Handle: a.jobEvents},
		{Method: "POST", Pattern: "/v1/jobs/{id}/cancel", Audience: wire.Clients, Write: true, Handle: a.cancelJob},
		{Method: "POST", Pattern: "/v1/jobs/{id}/retest", Audience: wire.Clients, Write: true, Creates: true, Buys: "retest", Handle: a.retestJob},
		{Method: "POST", Pattern: "/v1/jobs/{id}/rating", Audience: wire.Clients, Write: true, Handle: a.rateJob},
		{Method: "GET", Pattern: "/v1/jobs/{id}/questions", Audience: wire.Clients, Past: true, Handle: a.listQuestions},
		{Method: "POST", Pattern: "/v1/jobs/{id}/questions/{questionId}/answer", Audience: wire.Clients, Write: true, Creates: true, Handle: a.answerQuestion},
		{Method: "GET", Pattern: "/v1/jobs/{id}/disputes", Audience: wire.Clients, Past: true, Handle: a.listDisputes},
		{Method: "POST", Pattern: "/v1/jobs/{id}/disputes", Audience: wire.Clients, Write: true, Creates: true, Handle: a.disputeVerdict},
		{Method: "POST", Pattern: "/v1/estimate", Audience: wire.Clients, Submits: true, Handle: a.estimateJob},

		{Method: "POST", Pattern: "/v1/hosted/test", Audience: wire.Clients, Write: true, Creates: true, Buys: "hosted", Submits: true, Handle: a.testHosted},
		{Method: "GET", Pattern: "/v1/hosted/status/{jobId}", Audience: wire.Clients, Past: true, Waits: maxStatusWait * time.Second,
			Handle: a.hostedStatus},
		{Method: "POST", Pattern: "/v1/hosted/prepare-next", Audience: wire.Clients, Write: true, Creates: true, Handle: a.prepareNext},

		{Method: "POST", Pattern: "/v1/hosted/sessions", Audience: wire.Clients, Write: true, Creates: true, Buys: "session", Submits: true, Handle: a.createSession},
		{Method: "GET", Pattern: "/v1/hosted/sessions", Audience: wire.Clients, Past: true, Handle: a.listSessions},
		{Method: "GET", Pattern: "/v1/hosted/sessions/{id}", Audience: wire.Clients, Past: true, Handle: a.getSession},
		{Method: "POST", Pattern: "/v1/hosted/sessions/{id}/cancel", Audience: wire.Clients, Write: true, Handle: a.cancelSession},

		{Method: "POST", Pattern: "/v1/hooks/deploy/{token}", Audience: wire.Hooks, Write: true, Creates: true, Buys: "deploy",
			Submits: true, Handle: a.deployHook},

		{Method: "GET", Pattern: "/v1/loop-sessions/{id}", Audience: wire.Clients, Handle: a.getLoop},
		{Method: "POST", Pattern: "/v1/loop-sessions/{id}/finalize", Audience: wire.Clients, Write: true, Handle: a.finalizeLoop},

		{Method: "GET", Pattern: "/v1/events", Audience: wire.Clients, Handle: a.accountEvents},
		{Method: "GET", Pattern: "/v1/events/readers", Audience: wire.Clients, Handle: a.listReaders},
		{Method: "POST", Pattern: "/v1/events/readers/{name}/forget", Audience: wire.Clients, Write: true, Handle: a.forgetReader},

		{Method: "GET", Pattern: "/v1/projects", Audience: wire.Clients, Past: true, Handle: a.listProjects},
		{Method: "POST", Pattern: "/v1/projects", Audience: wire.Clients, Write: true, Creates: true, AllProjects: true, Handle: a.createProject},
		{Method: "GET", Pattern: "/v1/projects/{id}", Audience: wire.Clients, Past: true, Handle: a.getProject},
		{Method: "PATCH", Pattern: "/v1/projects/{id}", Audience: wire.Clients, Write: true, Handle: a.updateProject},
		{Method: "POST", Pattern: "/v1/projects/{id}/archive", Audience: wire.Clients, Write: true, Handle: a.archiveProject(true)},
		{Method: "POST", Pattern: "/v1/projects/{id}/restore", Audience: wire.Clients, Write: true, Handle: a.archiveProject(false)},
		{Method: "GET", Pattern: "/v1/projects/{id}/history", Audience: wire.Clients, Past: true, Handle: a.projectHistory},
		{Method: "GET", Pattern: "/v1/projects/{id}/open-failures", Audience: wire.Clients, Handle: a.openFailures},

		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/enable", Audience: wire.Clients, Write: true, Handle: a.enableWebhook},
		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/test", Audience: wire.Clients, Write: true, Creates: true, Handle: a.testWebhook},
		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/rotate-secret", Audience: wire.Clients, Write: true, Creates: true, Handle: a.rotateSecret},
		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/replay", Audience: wire.Clients, Write: true, Handle: a.replayDeliveries},
		{Method: "POST", Pattern: "/v1/projects/{id}/webhook/drop", Audience: wire.Clients, Write: true, Handle: a.dropDeliveries},
		{Method: "GET", Pattern: "/v1/projects/{id}/deliveries", Audience: wire.Clients, Handle: a.listDeliveries},
		{Method: "GET", Pattern: "/v1/projects/{id}/deliveries/{deliveryId}", Audience: wire.Clients, Handle: a.getDelivery},
		{Method: "POST", Pattern: "/v1/projects/{id}/deliveries/{deliveryId}/redeliver", Audience: wire.Clients, Write: true, Creates: true, Handle: a.redeliver},

		{Method: "GET", Pattern: "/v1/evidence", Audience: wire.Clients, AllProjects: true, Handle: a.getEvidence},
		{Method: "PATCH", Pattern: "/v1/evidence", Audience: wire.Clients, Write: true, AllProjects: true, Handle: a.updateEvidence},

		{Method: "GET", Pattern: "/v1/credits", Audience: wire.Clients, Past: true, Handle: a.getCredits},
		{Method: "GET", Pattern: "/v1/credits/ledger", Audience: wire.Clients, Past: true, AllProjects: true, Handle: a.creditsLedger},
		{Method: "GET", Pattern: "/v1/credits/statement", Audience: wire.Clients, Past: true, AllProjects: true, Handle: a.creditsStatement},
		{Method: "GET", Pattern: "/v1/activity", Audience: wire.Clients, AllProjects: true, Handle: a.activity},
		{Method: "GET", Pattern: "/v1/pricing", Audience: wire.Clients, Handle: a.getPricing},

		{Method: "GET", Pattern: "/v1/exports/events", Audience: wire.Clients, Past: true, AllProjects: true, Handle: a.exportEvents},
		{Method: "GET", Pattern: "/v1/exports/{table}", Audience: wire.Clients, Past: true, AllProjects: true, Handle: a.getExport},
		{Method: "GET", Pattern: "/v1/analytics/pass-rate", Audience: wire.Clients, Past: true, Handle: a.getPassRates},

		{Method: "GET", Pattern: "/v1/audit/checkpoint", Audience: wire.Clients, Handle: a.getCheckpoint},
		{Method: "GET", Pattern: "/v1/audit/proof", Audience: wire.Clients, AllProjects: true, Handle: a.getProof},

		{Method: "POST", Pattern: "/v1/sandbox/clock/advance", Audience: wire.Clients, Write: true, Creates: true, Handle: a.advanceClock},
		{Method: "POST", Pattern: "/v1/sandbox/jobs/{id}/play", Audience: wire.Clients, Write: true, Handle: a.playJob},
		{Method: "POST", Pattern: "/v1/sandbox/sessions/{id}/ready", Audience: wire.Clients, Write: true, Handle: a.readySlots},
	}
}
