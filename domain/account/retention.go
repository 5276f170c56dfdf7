package account

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/retention"
)

// DecideRetention changes how long the account's evidence is kept.
func DecideRetention(s State, c retention.Change, at time.Time) ([]domain.Event, error) {
	if err := open(s); err != nil {
		return nil, err
	}
	if err := c.Wrong().Refusal(); err != nil {
		return nil, err
	}
	after := c.On(s.Keep)
	if after.Same(s.Keep) {
		return nil, nil
	}
	return []domain.Event{&RetentionChanged{Keep: after, At: at}}, nil
}

// DecideHold places or releases a hold on all evidence of the account.
func DecideHold(s State, order retention.Order) ([]domain.Event, error) {
	if err := open(s); err != nil {
		return nil, err
	}
	return order.Decide(s.Hold,
		func(p retention.HoldPlaced) domain.Event { return &HoldPlaced{p} },
		func(r retention.HoldReleased) domain.Event { return &HoldReleased{r} })
}

func open(s State) error {
	switch {
	case !s.Exists:
		return domain.NotFound("account")
	case s.Erased:
		return ErrErased
	}
	return nil
}
