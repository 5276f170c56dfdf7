package project

import (
	"humanqa/domain"
	"humanqa/domain/retention"
)

// DecidePlaceHold places a hold on the evidence of the project's jobs.
func DecidePlaceHold(s State, p retention.HoldPlaced) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("project")
	}
	return retention.DecidePlace(s.Hold, p, func(p retention.HoldPlaced) domain.Event { return &HoldPlaced{p} })
}

// DecideReleaseHold releases the project's hold.
func DecideReleaseHold(s State, r retention.HoldReleased) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("project")
	}
	return retention.DecideRelease(s.Hold, r, func(r retention.HoldReleased) domain.Event { return &HoldReleased{r} })
}
