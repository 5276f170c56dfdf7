package job

import (
	"maps"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/retention"
)

// Status is the state of a job (specification, "Job states"; decisions, "Job states").
type Status string

// The states. Completed, cancelled and failed are ends and absorb. A voided job is
// never shown. Its submission crashed between the charge and the job, the charge
// was given back, and a late job.created must lose.
const (
	StatusPending   Status = "pending"
	StatusClaimed   Status = "claimed"
	StatusCompleted Status = "completed"
	StatusCancelled Status = "cancelled"
	StatusFailed    Status = "failed"
	StatusVoided    Status = "voided"
)

// Ended reports whether the state is an end that clients see.
func (s Status) Ended() bool {
	return s == StatusCompleted || s == StatusCancelled || s == StatusFailed
}

// State is a job after some events. It belongs to its fold: Evolve changes the
// map and the slices in place, so a state that was passed to Evolve must not
// be used again.
type State struct {
	// Exists is false before job.created, and for ever once the job is voided.
	Exists bool
	Status Status

	// The submission (see Created).
	Submission
	Items              []Item // empty while the list is still to be written
	Regressions        []Item // open that list
	GeneratedBy        string
	Credentials        string `sealed:"secret"`
	AccessInstructions string `sealed:"secret"`
	CreatedAt          time.Time

	// The SLA. DueAt is its end, from the submission on. A re-queue moves it, and so
	// does the start of a slot's session. Until that start a slot's SLA does not run,
	// and StartedAt is zero. A claim has no clock of its own.
	DueAt        time.Time
	StartedAt    time.Time
	RequeueCount int

	// The claim. Token counts the claims ever made, so that it fences the work of
	// earlier ones. CheckerID and ClaimedAt are zero without a live or completed claim.
	// SignOfLife is the time of the claimant's last call. ReleasedBy is the checker
	// that gave the claim of Token up.
	CheckerID  string
	Token      int
	ClaimedAt  time.Time
	SignOfLife time.Time
	ReleasedBy string
	// Shown are the kinds of secrets that were shown under the claim of Token.
	Shown []string
	// Untestable are the checkers that reported the job as untestable.
	Untestable []string
	// FailNote has the notes of these reports, a line a report.
	FailNote string `sealed:"text"`

	// The draft of the report. Verdicts, by item id, and Findings outlive a
	// release; after completion only Report holds them.
	Verdicts map[string]Verdict
	Findings []ReportItem
	// Withdrawn are the ids of findings that were taken back.
	Withdrawn []string
	Moments   []Moment
	// Questions are those of every claim, in their order. Only the last one may be open.
	Questions []Question
	// Script is the rest of the claiming robot's work, which asked a question; nil: none.
	Script *Script
	// Recordings are the recordings that can be played.
	Recordings []Recording

	// CommitStatus is the requested commit status; nil: none. CommitTold is the state
	// that the code host has. CommitAbandoned is the reason why it gets no other state.
	CommitStatus    *CommitStatusRequested
	CommitTold      CommitState
	CommitAbandoned string

	// Expired are the pieces of evidence that are kept no longer, by their ids. Hold
	// keeps the other pieces; nil: there is no hold.
	Expired map[string]*EvidenceExpired
	Hold    *retention.Hold

	CompletedAt time.Time
	Report      *Completed
	AIReport    *AIReport
	Rating      *Rated
	// Disputes are those of the report's verdicts, in their order. Report and AIReport have
	// the figures after the decisions.
	Disputes []Dispute

	CancelledAt  time.Time
	CancelReason string
	FailedAt     time.Time
	FailReason   string
	Refund       domain.Credits
	// RefundExpired is the part of Refund that goes to expired lots, as the end foretold
	// it (see Cancelled).
	RefundExpired domain.Credits

	// ErasedAt is when the job's texts and pictures were erased; zero: they are there.
	ErasedAt time.Time
}

// Verdict is what the checker says about one item of the list. Severity is
// empty unless the checker overrode the item's.
type Verdict struct {
	Status        ItemStatus
	Note          string
	Severity      Severity
	Reason        string
	ScreenshotURL string
	More          []string // pictures beside the first
}

// Clone gives a state that its fold no longer changes. It is not to be evolved.
func (s State) Clone() State {
	s.Verdicts, s.Expired = maps.Clone(s.Verdicts), maps.Clone(s.Expired)
	s.Findings, s.Questions, s.Shown = slices.Clone(s.Findings), slices.Clone(s.Questions), slices.Clone(s.Shown)
	return s
}

// ClaimedBy says that the checker holds the job.
func (s State) ClaimedBy(checkerID string) bool {
	return s.Status == StatusClaimed && s.CheckerID == checkerID
}

// Waiting says that the job is a slot of a session that has not started.
func (s State) Waiting() bool { return s.SessionID != "" && s.StartedAt.IsZero() }

// ReportID is empty until a report exists.
func (s State) ReportID() string {
	if s.Report == nil {
		return ""
	}
	return s.Report.ReportID
}

// Evolve folds one event into the state and takes the old state over (see
// State). Events of other aggregates change nothing. Each event of the job has its
// method evolve beside it.
func Evolve(s State, e domain.Event) State {
	if e, ours := e.(interface{ evolve(*State) }); ours {
		e.evolve(&s)
	}
	return s
}

// finding gives the place of a finding of the draft; -1 without it.
func (s State) finding(id string) int {
	return slices.IndexFunc(s.Findings, func(i ReportItem) bool { return i.ID == id })
}

// unclaim ends the claim, if there is one; its draft stays.
func (s *State) unclaim(to Status, by string) {
	s.Status, s.ReleasedBy = to, by
	s.CheckerID, s.ClaimedAt, s.SignOfLife, s.Script = "", time.Time{}, time.Time{}, nil
}

// heard notes a claimant's sign of life. Nodes' clocks differ a little, so an earlier
// time never replaces a later one.
func (s *State) heard(at time.Time) {
	if s.Status == StatusClaimed && at.After(s.SignOfLife) {
		s.SignOfLife = at
	}
}
