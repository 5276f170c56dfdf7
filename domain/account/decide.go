package account

import (
	"strings"

	"humanqa/domain"
)

// Every decision returns the events to write, none for a harmless repeat, or
// the refusal. Whether the caller may ask at all is not decided here.

// DecideCreate opens the account. Asking again with the same words is a
// repeat.
func DecideCreate(s State, name string, sandbox bool) ([]domain.Event, error) {
	switch {
	case s.Exists && s.Name == name && s.Sandbox == sandbox:
		return nil, nil
	case s.Exists:
		return nil, domain.Conflict("the account exists already")
	case strings.TrimSpace(name) == "":
		return nil, domain.Invalid(domain.Detail{Path: "name", Message: "must not be blank"})
	}
	return []domain.Event{&Created{Name: name, Sandbox: sandbox}}, nil
}

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
	case !s.Suspended:
		return nil, nil
	}
	return []domain.Event{&Reinstated{}}, nil
}

// DecideIssueKey adds an API key, also while the account is suspended: the key
// then works from the reinstatement on. The same id with the same hash is a
// repeat.
func DecideIssueKey(s State, k KeyIssued) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("account")
	}
	if old, ok := s.Keys[k.KeyID]; ok {
		if old.Hash == k.Hash {
			return nil, nil
		}
		return nil, domain.Conflict("the key id is taken")
	}
	if k.Scope != ScopeFull && k.Scope != ScopeRead {
		return nil, domain.Invalid(domain.Detail{Path: "scope", Message: "must be full or read"})
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
