package job

import (
	"slices"
	"time"

	"humanqa/domain"
)

// The kinds of secrets that a claimant is shown.
const (
	SecretCredentials = "credentials"
	SecretAccess      = "access" // the access instructions
	SecretAnswer      = "answer" // a secret that came with an answer
)

// SecretShown says that the claimant was given secrets of that kind. It is in the log
// before they are shown, once for each claim and kind.
type SecretShown struct {
	Kind  string `json:"kind"`
	Claim int    `json:"claim"` // its token
	// Checker is the checker's pseudonym in the account (decisions, "Secrets seen").
	Checker string    `json:"checker"`
	At      time.Time `json:"at"`
}

func (*SecretShown) EventType() string { return "job.secret_shown" }

func (e *SecretShown) evolve(s *State) { s.Shown = append(s.Shown, e.Kind) }

// DecideShowSecrets records the kinds of secrets that the job has, before its claimant
// sees them. A kind that was shown under the claim is a repeat.
func DecideShowSecrets(s State, checkerID string, token int, pseudonym string, now time.Time) (events []domain.Event, err error) {
	if err := fenced(s, checkerID, token); err != nil {
		return nil, err
	}
	answered := slices.ContainsFunc(s.Questions, func(q Question) bool { return q.HasSecret })
	for _, secret := range []struct {
		kind string
		is   bool
	}{{SecretCredentials, s.Credentials != ""}, {SecretAccess, s.AccessInstructions != ""}, {SecretAnswer, answered}} {
		if secret.is && !slices.Contains(s.Shown, secret.kind) {
			events = append(events, &SecretShown{Kind: secret.kind, Claim: token, Checker: pseudonym, At: now})
		}
	}
	return events, nil
}
