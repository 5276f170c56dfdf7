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
	if wrong := c.Wrong(); len(wrong) > 0 {
		return nil, domain.Invalid(wrong...)
	}
	after := c.On(s.Keep)
	if after.Same(s.Keep) {
		return nil, nil
	}
	return []domain.Event{&RetentionChanged{Keep: after, At: at}}, nil
}

// DecidePlaceHold places a hold on all evidence of the account.
func DecidePlaceHold(s State, p retention.HoldPlaced) ([]domain.Event, error) {
	if err := open(s); err != nil {
		return nil, err
	}
	return retention.DecidePlace(s.Hold, p, func(p retention.HoldPlaced) domain.Event { return &HoldPlaced{p} })
}

// DecideReleaseHold releases the account's hold.
func DecideReleaseHold(s State, r retention.HoldReleased) ([]domain.Event, error) {
	if err := open(s); err != nil {
		return nil, err
	}
	return retention.DecideRelease(s.Hold, r, func(r retention.HoldReleased) domain.Event { return &HoldReleased{r} })
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
