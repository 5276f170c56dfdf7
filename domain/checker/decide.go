package checker

import (
	"slices"
	"strings"

	"humanqa/domain"
)

// DecideCreate registers the checker. Asking again with the same key is a
// repeat.
func DecideCreate(s State, c Created) ([]domain.Event, error) {
	switch {
	case s.Exists && s.Hash == c.Hash:
		return nil, nil
	case s.Exists:
		return nil, domain.Conflict("the checker exists already")
	case strings.TrimSpace(c.Name) == "":
		return nil, domain.Invalid(domain.Detail{Path: "name", Message: "must not be blank"})
	}
	return []domain.Event{&c}, nil
}

// DecideTake reserves one of the checker's limit places for a job. live says
// whether the checker holds the claim on a job right now; it is asked only
// about the reservations of other jobs, and those it denies are dropped. The
// job that was reserved last needs no second reservation: that is how a claim
// goes on after a crash between its two writes.
func DecideTake(s State, jobID string, live func(jobID string) bool, limit int) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("checker")
	}
	if n := len(s.Held); n > 0 && s.Held[n-1] == jobID {
		return nil, nil
	}
	held := make([]string, 0, len(s.Held)+1)
	for _, id := range s.Held {
		if id != jobID && live(id) {
			held = append(held, id)
		}
	}
	if len(held) >= limit {
		return nil, domain.Conflict("the checker holds %d of %d claims", len(held), limit).
			WithHint("complete or release the claimed job first").
			With("claimedJobs", slices.Clone(held))
	}
	return []domain.Event{&ClaimTaken{JobID: jobID, Held: append(held, jobID)}}, nil
}
