package job

import (
	"time"

	"humanqa/domain"
)

// Submission is the client's request for a test. The command, the event, the state, the
// read models and the announcements share this one type.
type Submission struct {
	AccountID string `json:"accountId"`
	ProjectID string `json:"projectId,omitempty"`
	URL       string `json:"url" sealed:"text"`
	Title     string `json:"title" sealed:"text"`
	// Description is what the checker should test; Feature is the hosted
	// endpoints' word for it.
	Description string `json:"description,omitempty" sealed:"text"`
	Feature     string `json:"feature,omitempty" sealed:"text"`
	// Type is the canonical code, TypeEcho the spelling that was submitted.
	Type        Type           `json:"type"`
	TypeEcho    string         `json:"typeEcho"`
	Urgent      bool           `json:"urgent,omitempty"`
	SLAMinutes  int            `json:"slaMinutes"`
	Price       domain.Credits `json:"price"`
	Source      string         `json:"source"` // api, hosted, session, retest, bulk, deploy, loop
	ParentID    string         `json:"parentId,omitempty"`
	BatchID     string         `json:"batchId,omitempty"`
	BatchIndex  int            `json:"batchIndex,omitempty"`              // from 0, in submitted order
	BatchName   string         `json:"batchName,omitempty" sealed:"text"` // the same in each job of the batch
	SessionID   string         `json:"sessionId,omitempty"`
	SessionSlot int            `json:"sessionSlot,omitempty"` // from 1
	LoopID      string         `json:"loopId,omitempty"`
	HostedApp   bool           `json:"hostedApp,omitempty"`
	// Sandbox jobs never reach human checkers (decisions, "Sandbox").
	Sandbox bool   `json:"sandbox,omitempty"`
	Target  Target `json:"target,omitzero"`
	// Commit, Branch and Environment are those of the deploy that is tested.
	Commit      string `json:"commit,omitempty"`
	Branch      string `json:"branch,omitempty" sealed:"text"`
	Environment string `json:"environment,omitempty" sealed:"text"`
}

// Target is the device and software to test on. Empty strings mean any.
type Target struct {
	Device     string `json:"device,omitempty" sealed:"text"`
	OS         string `json:"os,omitempty" sealed:"text"`
	Browser    string `json:"browser,omitempty" sealed:"text"`
	ScreenSize string `json:"screenSize,omitempty" sealed:"text"`
	Network    string `json:"network,omitempty" sealed:"text"`
}

// Again is the submission of a retest: the same, but in no session, batch or loop. The
// commit that the URL shows by then is not known.
func (s Submission) Again(parentID string) Submission {
	s.Source, s.ParentID, s.Commit = "retest", parentID, ""
	s.BatchID, s.BatchIndex, s.BatchName, s.SessionID, s.SessionSlot, s.LoopID = "", 0, "", "", 0, ""
	return s
}

// SLA is how long the job may take.
func (s Submission) SLA() time.Duration { return time.Duration(s.SLAMinutes) * time.Minute }
