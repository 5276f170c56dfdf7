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
	place, err := retention.DecidePlace(s.Hold, &p)
	if err != nil || !place {
		return nil, err
	}
	return []domain.Event{&HoldPlaced{p}}, nil
}

// DecideReleaseHold releases the project's hold.
func DecideReleaseHold(s State, r retention.HoldReleased) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("project")
	}
	release, err := retention.DecideRelease(s.Hold, &r)
	if err != nil || !release {
		return nil, err
	}
	return []domain.Event{&HoldReleased{r}}, nil
}
