package job

import (
	"slices"
	"time"

	"humanqa/domain"
)

// Claimed gives the job to a checker. The token fences every later call: work under an
// older token is refused. DueAt is the end of the SLA.
type Claimed struct {
	CheckerID string    `json:"checkerId"`
	Token     int       `json:"token"`
	DueAt     time.Time `json:"dueAt"`
	At        time.Time `json:"at"`
}

// Released puts a claimed job back into the queue. Its verdicts stay as a draft for the
// next checker.
type Released struct {
	Token  int       `json:"token"`
	Reason string    `json:"reason"` // checker, silent, left
	At     time.Time `json:"at"`
}

// Heartbeat is a sign of life of the claimant.
type Heartbeat struct {
	Token int       `json:"token"`
	At    time.Time `json:"at"`
}

func (*Claimed) EventType() string   { return "job.claimed" }
func (*Released) EventType() string  { return "job.released" }
func (*Heartbeat) EventType() string { return "job.heartbeat" }

func (e *Heartbeat) evolve(s *State) { s.heard(e.At) }
func (*Released) evolve(s *State)    { s.unclaim(StatusPending, s.CheckerID) }

func (e *Claimed) evolve(s *State) {
	s.Status, s.CheckerID, s.Token = StatusClaimed, e.CheckerID, e.Token
	s.ClaimedAt, s.SignOfLife, s.ReleasedBy, s.Shown = e.At, e.At, "", nil
}

// DecideClaim gives the job to a checker. The claimant asking again is a
// repeat. The SLA's clock runs from the submission, not from the claim
// (decisions, "SLA"). Robots do sandbox jobs and AI reviews
// (DecideRobotComplete).
func DecideClaim(s State, checkerID string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.ClaimedBy(checkerID):
		return nil, nil
	case s.Status != StatusPending:
		return nil, domain.Conflict("the job is %s", s.Status).WithHint("claim another job")
	case s.Type.Automatic():
		return nil, domain.Conflict("an AI review is not for checkers").WithHint("claim another job")
	case s.Sandbox:
		return nil, domain.Conflict("a sandbox job is not for checkers").WithHint("claim another job")
	case slices.Contains(s.Untestable, checkerID):
		return nil, domain.Conflict("you reported the job as untestable").WithHint("claim another job")
	case len(s.Items) == 0:
		return nil, errNoList()
	}
	return []domain.Event{s.claimedEvent(checkerID, now)}, nil
}

func (s State) claimedEvent(checkerID string, now time.Time) *Claimed {
	return &Claimed{CheckerID: checkerID, Token: s.Token + 1, DueAt: s.DueAt, At: now}
}

// The reasons for which a claim is given up.
const (
	ReleaseChecker = "checker" // the claimant released it
	ReleaseSilent  = "silent"  // no sign of life of the claimant
	ReleaseLeft    = "left"    // the claimant left the session
)

// DecideRelease puts the job back into the queue. A second release by the same claim is
// a repeat, as long as no other checker took the job.
func DecideRelease(s State, checkerID string, token int, now time.Time) ([]domain.Event, error) {
	if s.Status == StatusPending && token > 0 && s.Token == token && s.ReleasedBy == checkerID {
		return nil, nil
	}
	if err := fenced(s, checkerID, token); err != nil {
		return nil, err
	}
	return s.leaving(now, &Released{Token: token, Reason: ReleaseChecker, At: now}), nil
}

// DecideLeave gives up the checker's claim on a session's slot.
func DecideLeave(s State, checkerID string, now time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case !s.ClaimedBy(checkerID):
		return nil, nil
	}
	return s.leaving(now, &Released{Token: s.Token, Reason: ReleaseLeft, At: now}), nil
}

// heartbeatEvery is the least time between two events for signs of life.
const heartbeatEvery = time.Minute

// SilentAfter is how long a claim stands without a sign of life.
const SilentAfter = 6 * time.Minute

// DecideHeartbeat notes that the claimant is still at work. Within a minute of the last
// sign of life it writes nothing.
func DecideHeartbeat(s State, checkerID string, token int, now time.Time) ([]domain.Event, error) {
	if err := fenced(s, checkerID, token); err != nil {
		return nil, err
	}
	if now.Sub(s.SignOfLife) < heartbeatEvery {
		return nil, nil
	}
	return []domain.Event{&Heartbeat{Token: token, At: now}}, nil
}

// DecideReleaseSilent ends a claim without a sign of life for too long; the verdicts stay
// as a draft for the next checker. It never ends a robot's claim. The clock stands while
// a question is open.
func DecideReleaseSilent(s State, now time.Time) ([]domain.Event, error) {
	_, asking := s.OpenQuestion()
	switch {
	case !s.Exists:
		return nil, domain.NotFound("job")
	case s.Status != StatusClaimed || asking || IsRobot(s.CheckerID) || now.Sub(s.SignOfLife) < SilentAfter:
		return nil, nil
	}
	return []domain.Event{&Released{Token: s.Token, Reason: ReleaseSilent, At: now}}, nil
}

// working is fenced for work that belongs to the report.
func working(s State, checkerID string, token int) error {
	if err := fenced(s, checkerID, token); err != nil {
		return err
	}
	return begun(s)
}

// fenced refuses work that is not under the live claim: the checker must be the
// claimant and the token the claim's own. After the end of a claim, or after a new
// claim, a checker's old token is stale.
func fenced(s State, checkerID string, token int) error {
	switch {
	case !s.Exists:
		return domain.NotFound("job")
	case s.Status == StatusPending:
		return domain.Conflict("the claim has ended").WithHint("claim the job again")
	case s.Status != StatusClaimed:
		return domain.Conflict("the job is %s", s.Status).WithHint("claim another job")
	case s.CheckerID != checkerID:
		return domain.Conflict("the job is claimed by another checker").WithHint("claim another job")
	case s.Token != token:
		return domain.Conflict("the claim token is stale").WithHint("claim the job again")
	}
	return nil
}

// begun refuses a slot's work before its session has started.
func begun(s State) error {
	if s.Waiting() {
		return NotStarted()
	}
	return nil
}

// NotStarted refuses work that a slot's checker may do only after its session has
// started.
func NotStarted() error {
	return domain.Conflict("the session has not started").WithHint("wait in the lobby until it starts")
}

// alive is the time of a sign of life, never before the last known one, although nodes'
// clocks differ. The silence is timed from the last sign of life.
func (s State) alive(at time.Time) time.Time { return notBefore(at, s.SignOfLife) }
