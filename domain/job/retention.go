package job

import (
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/retention"
)

// Piece is a piece of evidence of the job.
type Piece struct {
	ID          string `json:"id"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"` // bytes
	Recording   bool   `json:"recording,omitempty"`
}

// EvidenceExpired says that pieces of evidence are kept no longer. Their files go after
// it. The report and the job's end stay as they are.
type EvidenceExpired struct {
	Pieces []Piece `json:"pieces"`
	retention.Rule
	At time.Time `json:"at"`
}

// HoldPlaced keeps the job's evidence longer than the settings say.
type HoldPlaced struct{ retention.HoldPlaced }

// HoldReleased ends the job's hold.
type HoldReleased struct{ retention.HoldReleased }

func (*EvidenceExpired) EventType() string { return "job.evidence_expired" }
func (*HoldPlaced) EventType() string      { return "job.hold_placed" }
func (*HoldReleased) EventType() string    { return "job.hold_released" }

func (e *HoldPlaced) evolve(s *State) { s.Hold = e.Hold() }
func (*HoldReleased) evolve(s *State) { s.Hold = nil }

func (e *EvidenceExpired) evolve(s *State) {
	if s.Expired == nil {
		s.Expired = make(map[string]*EvidenceExpired, len(e.Pieces))
	}
	for _, piece := range e.Pieces {
		s.Expired[piece.ID] = e
	}
}

// EndedAt is when the job ended; zero before it has.
func (s State) EndedAt() time.Time {
	switch s.Status {
	case StatusCompleted:
		return s.CompletedAt
	case StatusCancelled:
		return s.CancelledAt
	case StatusFailed:
		return s.FailedAt
	}
	return time.Time{}
}

// Retention is how the job's account and project keep evidence. Held says that one of
// them has a hold.
type Retention struct {
	Account, Project retention.Keep
	Held             bool
}

// DecideExpire expires the pieces that are due, with an event for each rule. It does not
// name a piece that expired before. A hold keeps all pieces, and so does a dispute until it
// is decided: the operator looks at them.
func DecideExpire(s State, keep Retention, pieces []Piece, now time.Time) ([]domain.Event, error) {
	disputed := slices.ContainsFunc(s.Disputes, func(d Dispute) bool { return d.Decided == nil })
	return s.expire(keep.Held || disputed, pieces, now, func(piece Piece) (retention.Rule, bool) {
		rule, limited := retention.Shortest(keep.Account, keep.Project, piece.Recording)
		return rule, limited && !rule.Due(s.EndedAt()).After(now)
	})
}

// DecideEraseEvidence expires all of the pieces, because the checker who made them is
// erased. It keeps them under a hold, and while the job has not ended.
func DecideEraseEvidence(s State, held bool, pieces []Piece, now time.Time) ([]domain.Event, error) {
	return s.expire(held, pieces, now, func(Piece) (retention.Rule, bool) {
		return retention.Rule{Setting: retention.CheckerErased}, true
	})
}

// expire expires the pieces that are due, each by its rule.
func (s State) expire(held bool, pieces []Piece, now time.Time, due func(Piece) (retention.Rule, bool)) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.EndedAt().IsZero() || held || s.Hold != nil:
		return nil, nil
	}
	var events []domain.Event
	byRule := map[retention.Rule]*EvidenceExpired{}
	for _, piece := range pieces {
		rule, is := due(piece)
		if !is || s.Expired[piece.ID] != nil {
			continue
		}
		if byRule[rule] == nil {
			byRule[rule] = &EvidenceExpired{Rule: rule, At: now}
			events = append(events, byRule[rule])
		}
		byRule[rule].Pieces = append(byRule[rule].Pieces, piece)
	}
	return events, nil
}

// DecideHold places or releases a hold on the job's evidence.
func DecideHold(s State, order retention.Order) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("job")
	}
	return order.Decide(s.Hold,
		func(p retention.HoldPlaced) domain.Event { return &HoldPlaced{p} },
		func(r retention.HoldReleased) domain.Event { return &HoldReleased{r} })
}
