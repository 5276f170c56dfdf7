package checkers

import (
	"humanqa/httpapi/admit"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
)

// Handlers are the handlers of checkers.
type Handlers struct {
	v1.Shared
	Writer *admit.Writer
}

// Routes are the routes of checkers.
func (a *Handlers) Routes() []wire.Route {
	return []wire.Route{
		{Method: "GET", Pattern: "/v1/checker/queue", Audience: wire.Checkers, Handle: a.checkerQueue},
		{Method: "GET", Pattern: "/v1/checker/claims", Audience: wire.Checkers, Handle: a.liveClaim},
		{Method: "POST", Pattern: "/v1/checker/claims", Audience: wire.Checkers, Write: true, Handle: a.claimJob},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/release", Audience: wire.Checkers, Write: true, Handle: a.releaseJob},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/untestable", Audience: wire.Checkers, Write: true, Handle: a.reportUntestable},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/heartbeat", Audience: wire.Checkers, Write: true, Handle: a.heartbeat},

		{Method: "PUT", Pattern: "/v1/checker/jobs/{id}/items/{itemId}", Audience: wire.Checkers, Write: true, Handle: a.checkItem},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/items", Audience: wire.Checkers, Write: true, Creates: true, Handle: a.addFinding},
		{Method: "PUT", Pattern: "/v1/checker/jobs/{id}/findings/{findingId}", Audience: wire.Checkers, Write: true, Handle: a.editFinding},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/findings/{findingId}/withdraw", Audience: wire.Checkers, Write: true, Handle: a.withdrawFinding},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/questions", Audience: wire.Checkers, Write: true, Creates: true, Handle: a.askQuestion},
		{Method: "GET", Pattern: "/v1/checker/jobs/{id}/open-failures", Audience: wire.Checkers, Handle: a.knownFailures},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/complete", Audience: wire.Checkers, Write: true, Handle: a.completeJob},

		{Method: "GET", Pattern: "/v1/checker/disputes", Audience: wire.Checkers, Handle: a.openDisputes},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/disputes/{disputeId}/answer", Audience: wire.Checkers, Write: true, Handle: a.answerDispute},

		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/evidence", Audience: wire.Checkers, Write: true, Upload: true, Handle: a.uploadEvidence},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/recordings", Audience: wire.Checkers, Write: true, Creates: true, Handle: a.createRecording},
		{Method: "PATCH", Pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}", Audience: wire.Checkers, Write: true, Upload: true, Handle: a.appendRecording},
		{Method: "GET", Pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}", Audience: wire.Checkers, Handle: a.getRecording},
		{Method: "HEAD", Pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}", Audience: wire.Checkers, Handle: a.getRecording},
		{Method: "POST", Pattern: "/v1/checker/jobs/{id}/recordings/{recordingId}/finish", Audience: wire.Checkers, Write: true, Handle: a.finishRecording},

		{Method: "GET", Pattern: "/v1/checker/sessions/{id}", Audience: wire.Checkers, Handle: a.checkerSession},
		{Method: "POST", Pattern: "/v1/checker/sessions/{id}/ready", Audience: wire.Checkers, Write: true, Handle: a.sessionReady},
		{Method: "POST", Pattern: "/v1/checker/sessions/{id}/leave", Audience: wire.Checkers, Write: true, Handle: a.sessionLeave},
	}
}
