package job

import (
	"slices"
	"strings"
	"time"

	"humanqa/domain"
)

// The reasons for which a job fails (decisions, "failed"). Failed items are no such
// reason.
const (
	FailSLA        = "sla"
	FailUntestable = "untestable"
	FailOperator   = "operator"
)

// failReasons has a sentence for each reason.
var failReasons = []struct{ code, sentence string }{
	{FailSLA, "No checker finished it in time."},
	{FailUntestable, "Checkers could not test it."},
	{FailOperator, "An operator ended the test."},
}

// FailReasons lists the reasons for which a job fails.
func FailReasons() []string {
	codes := make([]string, len(failReasons))
	for i, r := range failReasons {
		codes[i] = r.code
	}
	return codes
}

// FailSentence tells the client why the job failed. A reason of a newer version has none.
func FailSentence(reason string) string {
	for _, r := range failReasons {
		if r.code == reason {
			return r.sentence
		}
	}
	return ""
}

// MaxSLAMisses bounds how often a job misses its SLA: the last miss fails the job.
const MaxSLAMisses = 3

// SLAMissed ends the claim, if there is one. Requeued puts the job back into the queue
// until DueAt. Otherwise the job has failed, and job.failed follows in the same append.
// RequeueCount counts the returns to the queue; the miss that fails the job does not
// count.
type SLAMissed struct {
	RequeueCount int            `json:"requeueCount"`
	Requeued     bool           `json:"requeued"`
	Refund       domain.Credits `json:"refund,omitempty"`
	// RefundExpired is as in Cancelled.
	RefundExpired domain.Credits `json:"refundExpired,omitempty"`
	DueAt         time.Time      `json:"dueAt,omitzero"`
	SessionID     string         `json:"sessionId,omitempty"`
	At            time.Time      `json:"at"`
}

// UntestableReported is a checker's report that the job cannot be tested. It ends the
// claim. A report by a second checker or an operator adds job.failed in the same
// append.
type UntestableReported struct {
	CheckerID string    `json:"checkerId"`
	Token     int       `json:"token"`
	Reason    string    `json:"reason" sealed:"text"`
	Note      string    `json:"note,omitempty" sealed:"text"`
	At        time.Time `json:"at"`
}

// Failed ends the job with a full refund; the refund follows in the ledger. Failed items
// never fail a job (decisions, "failed").
type Failed struct {
	Reason string         `json:"reason"` // sla, untestable, operator
	Refund domain.Credits `json:"refund"`
	// Note has the reports of checkers that could not test the job, a line each; older
	// events have none.
	Note string `json:"note,omitempty" sealed:"text"`
	// RefundExpired is as in Cancelled.
	RefundExpired domain.Credits `json:"refundExpired,omitempty"`
	SessionID     string         `json:"sessionId,omitempty"`
	LoopID        string         `json:"loopId,omitempty"`
	// CommitStatus is as in Completed.
	CommitStatus bool      `json:"commitStatus,omitempty"`
	At           time.Time `json:"at"`
}

func (*SLAMissed) EventType() string          { return "job.failed_sla" }
func (*UntestableReported) EventType() string { return "job.untestable_reported" }
func (*Failed) EventType() string             { return "job.failed" }

func (e *UntestableReported) evolve(s *State) {
	s.unclaim(StatusPending, e.CheckerID)
	s.Untestable = append(s.Untestable, e.CheckerID)
	s.FailNote = FailNote(s.FailNote, e.Reason, e.Note)
}

func (e *SLAMissed) evolve(s *State) {
	s.unclaim(StatusPending, "")
	s.RequeueCount = e.RequeueCount
	if e.Requeued {
		s.DueAt = e.DueAt
	}
}

func (e *Failed) evolve(s *State) {
	s.unclaim(StatusFailed, s.ReleasedBy)
	s.FailedAt, s.FailReason, s.Refund, s.RefundExpired = e.At, e.Reason, e.Refund, e.RefundExpired
}

// DecideMissSLA ends the claim of a job at the end of its SLA. The job goes back into the
// queue and its clock starts again; the third miss fails it with a full refund. A
// session's slot fails on its first miss, because its session cannot wait. Before the end
// of the SLA, and after the end of the job, nothing happens. The clock stands while a
// question is open.
func DecideMissSLA(s State, now time.Time) ([]domain.Event, error) {
	_, asking := s.OpenQuestion()
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.Status != StatusPending && s.Status != StatusClaimed, s.Waiting(), asking, now.Before(s.DueAt):
		return nil, nil
	}
	missed := &SLAMissed{RequeueCount: s.RequeueCount, SessionID: s.SessionID, At: now}
	if s.SessionID != "" || s.RequeueCount == MaxSLAMisses-1 {
		missed.Refund = s.Price
		return []domain.Event{missed, s.fail(FailSLA, now)}, nil
	}
	missed.RequeueCount++
	missed.Requeued, missed.DueAt = true, now.Add(s.SLA())
	return []domain.Event{missed}, nil
}

// DecideUntestable ends the claim with the claimant's report that the job cannot be
// tested. The first report puts the job back into the queue, for another checker. A
// second checker's report fails it with a full refund.
func DecideUntestable(s State, u UntestableReported) ([]domain.Event, error) {
	said := slices.Contains(s.Untestable, u.CheckerID)
	if said && s.Token == u.Token && s.ReleasedBy == u.CheckerID {
		return nil, nil
	}
	if err := fenced(s, u.CheckerID, u.Token); err != nil {
		return nil, err
	}
	if strings.TrimSpace(u.Reason) == "" {
		return nil, domain.InvalidAt("reason", "must not be blank")
	}
	events := s.leaving(u.At, &u)
	if len(s.Untestable) > 0 && !said {
		s.FailNote = FailNote(s.FailNote, u.Reason, u.Note)
		events = append(events, s.fail(FailUntestable, u.At))
	}
	return events, nil
}

// DecideFail ends a job by the operator's order, also under a claim.
func DecideFail(s State, reason string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.Status == StatusFailed:
		return nil, nil
	case s.Status != StatusPending && s.Status != StatusClaimed:
		return nil, domain.Conflict("the job is %s", s.Status).WithHint("only a pending or claimed job can fail")
	case reason != FailUntestable && reason != FailOperator:
		return nil, domain.InvalidAt("reason", "must be untestable or operator")
	}
	return s.leaving(now, s.fail(reason, now)), nil
}

// FailNote adds a checker's report to the note on the job's failure: a line with the
// reason and the note. The checker is never named.
func FailNote(note, reason, said string) string {
	line := strings.Join(strings.Fields(reason), " ")
	if said = strings.Join(strings.Fields(said), " "); said != "" {
		line += ": " + said
	}
	if note == "" {
		return line
	}
	return note + "\n" + line
}

func (s State) fail(reason string, now time.Time) *Failed {
	return &Failed{
		Reason: reason, Refund: s.Price, Note: s.FailNote, SessionID: s.SessionID, LoopID: s.LoopID,
		CommitStatus: s.TellsCommit(), At: now,
	}
}
