package project

import (
	"humanqa/domain"
	"humanqa/domain/retention"
)

// DecideHold places or releases a hold on the evidence of the project's jobs.
func DecideHold(s State, order retention.Order) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("project")
	}
	return order.Decide(s.Hold,
		func(p retention.HoldPlaced) domain.Event { return &HoldPlaced{p} },
		func(r retention.HoldReleased) domain.Event { return &HoldReleased{r} })
}
