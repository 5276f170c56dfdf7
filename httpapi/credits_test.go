package httpapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
)

// grant gives the account a lot that expires after a while; 0: never.
func (s *service) grant(accountID string, amount domain.Credits, after time.Duration) (expiresAt any) {
	s.t.Helper()
	var at *time.Time
	if after > 0 {
		t := s.deps.Now().UTC().Truncate(time.Millisecond).Add(after)
		at, expiresAt = &t, t.Format(wire.TimestampLayout)
	}
	_, position, err := s.commands.GrantCredits(s.t.Context(), operator(uuid.New()), accountID, amount, at, "test")
	s.visible(position, err)
	return expiresAt
}

// Decisions, "Expiring credits".
func TestCreditsShowTheLotsThatExpireWithinThirtyDaysSoonestFirst(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(10)
	const day = 24 * time.Hour
	later := s.grant(accountID, 20, 29*day)
	s.grant(accountID, 30, 31*day)
	sooner := s.grant(accountID, 7, day)
	s.submitted(key) // out of what expires first
	equal(t, s.call(key, "GET", "/v1/credits", "").want(http.StatusOK), map[string]any{
		"available": 62.0, "used": 5.0, "total": 67.0, "expiringCredits": []any{
			map[string]any{"amount": 2.0, "expiresAt": sooner}, map[string]any{"amount": 20.0, "expiresAt": later},
		},
	})
}

// Decisions, "Sandbox clock": a sandbox's time is its own, for what it reads as for
// what it does.
func TestASandboxesCreditsExpireByItsOwnClock(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID := s.parts.Account(0, true)
	key := s.key(accountID, command.IssueKey{Scope: account.ScopeFull})
	s.grant(accountID, 5, 0)
	s.grant(accountID, 7, time.Hour)
	later := s.grant(accountID, 30, 30*24*time.Hour+30*time.Minute)
	s.call(key, "POST", "/v1/sandbox/clock/advance", `{"seconds":3601}`).want(http.StatusOK)
	equal(t, s.call(key, "GET", "/v1/credits", "").want(http.StatusOK), map[string]any{
		"available": 35.0, "used": 0.0, "total": 35.0, "expiringCredits": []any{map[string]any{"amount": 30.0, "expiresAt": later}},
	})
}
