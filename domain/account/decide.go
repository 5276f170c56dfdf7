package account

import (
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"humanqa/domain"
)

// Every decision returns the events to write, none for a harmless repeat, or the refusal.
// The caller checks the right to ask.

// DecideCreate opens the account. Asking again with the same words is a
// repeat.
func DecideCreate(s State, name string, sandbox bool) ([]domain.Event, error) {
	switch {
	case s.Exists && s.Name == name && s.Sandbox == sandbox:
		return nil, nil
	case s.Exists:
		return nil, domain.Conflict("the account exists already")
	case strings.TrimSpace(name) == "":
		return nil, domain.InvalidAt("name", "must not be blank")
	}
	return []domain.Event{&Created{Name: name, Sandbox: sandbox}}, nil
}

// The bounds of a move of a sandbox's clock.
const (
	MaxAdvance = 365 * 24 * time.Hour // by one call
	maxAhead   = 10 * MaxAdvance
)

// DecideAdvance moves a sandbox's clock, in whole seconds. The same advance id
// is a repeat.
func DecideAdvance(s State, advanceID string, by time.Duration) ([]domain.Event, error) {
	_, done := s.Advances[advanceID]
	switch {
	case !s.Exists:
		return nil, domain.NotFound("account")
	case s.Erased:
		return nil, ErrErased
	case !s.Sandbox:
		return nil, ErrNoSandbox
	case done:
		return nil, nil
	case by < time.Second || by > MaxAdvance:
		return nil, domain.InvalidAt("seconds", "is out of range")
	case s.Ahead+by > maxAhead:
		return nil, domain.Conflict("the clock would be more than ten years ahead").WithHint("open another sandbox account")
	}
	return []domain.Event{&ClockAdvanced{
		AdvanceID: advanceID, Seconds: int64(by / time.Second), OffsetSeconds: int64((s.Ahead + by) / time.Second),
	}}, nil
}

// ErrNoSandbox refuses an operation that only a sandbox account may do.
var ErrNoSandbox = domain.Forbidden("the account is not a sandbox").
	WithHint("use a key of a sandbox account, which starts with qa_test_")

// DecideSuspend stops the account's keys.
func DecideSuspend(s State, reason string) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("account")
	case s.Suspended:
		return nil, nil
	}
	return []domain.Event{&Suspended{Reason: reason}}, nil
}

// DecideReinstate ends a suspension.
func DecideReinstate(s State) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("account")
	case s.Erased:
		return nil, ErrErased
	case !s.Suspended:
		return nil, nil
	}
	return []domain.Event{&Reinstated{}}, nil
}

// DecideChoosePool keeps the account's tests to a pool's checkers; without an id they may
// go to any checker. The caller checks that the account may use the pool.
func DecideChoosePool(s State, poolID string) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("account")
	case s.Erased:
		return nil, ErrErased
	case s.PoolID == poolID:
		return nil, nil
	}
	return []domain.Event{&PoolChosen{PoolID: poolID}}, nil
}

// DecideIssueKey adds an API key, also while the account is suspended: the key
// then works from the reinstatement on. The same id with the same hash is a
// repeat.
func DecideIssueKey(s State, k KeyIssued) ([]domain.Event, error) {
	if err := open(s); err != nil {
		return nil, err
	}
	if old, ok := s.Keys[k.KeyID]; ok {
		if old.Hash == k.Hash {
			return nil, nil
		}
		return nil, domain.Conflict("the key id is taken")
	}
	var wrong domain.Wrong
	wrong.AddIf(utf8.RuneCountInString(k.Name) > MaxKeyName, "name", "must have at most %d characters", MaxKeyName)
	wrong.AddIf(k.Scope != ScopeFull && k.Scope != ScopeRead, "scope", "must be full or read")
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	return []domain.Event{&k}, nil
}

// DecideRevokeKey ends an API key for good.
func DecideRevokeKey(s State, keyID string) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("account")
	}
	switch k, ok := s.Keys[keyID]; {
	case !ok:
		return nil, domain.NotFound("key")
	case k.Revoked:
		return nil, nil
	}
	return []domain.Event{&KeyRevoked{KeyID: keyID}}, nil
}

// DecideRefused records refused tests; of an erased account nothing more.
func DecideRefused(s State, e SubmissionsRefused) ([]domain.Event, error) {
	if !s.Exists || s.Erased {
		return nil, nil
	}
	e.From, e.To = e.From.Add(s.Ahead), e.To.Add(s.Ahead)
	return []domain.Event{&e}, nil
}

// ErrErased refuses an operation on an erased account.
var ErrErased = domain.Conflict("the account was erased").WithHint("open another one")

// DecideErase ends the account and every key of it. by is the operator's name. A repeat
// changes nothing.
func DecideErase(s State, by, reason string) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("account")
	case s.Erased:
		return nil, nil
	}
	if err := domain.OrderOfErasure(by, reason); err != nil {
		return nil, err
	}
	var events []domain.Event
	for _, id := range slices.Sorted(maps.Keys(s.Keys)) {
		if !s.Keys[id].Revoked {
			events = append(events, &KeyRevoked{KeyID: id})
		}
	}
	return append(events, &Erased{By: by, Reason: reason}), nil
}

// DecideFinishErasure says that nothing is left to erase.
func DecideFinishErasure(s State) ([]domain.Event, error) {
	switch {
	case !s.Erased:
		return nil, domain.Conflict("the account is not erased")
	case s.Finished:
		return nil, nil
	}
	return []domain.Event{&ErasureFinished{}}, nil
}
