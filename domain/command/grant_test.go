package command_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

func TestAGrantToASandboxGoesByTheSandboxesTime(t *testing.T) {
	t.Parallel()
	s := setSandbox(t)
	_, err := s.AdvanceClock(t.Context(), s.inSandbox(), 48*time.Hour)
	must.NoError(t, err)
	over := time.Now().Add(24 * time.Hour)
	_, _, err = s.GrantCredits(t.Context(), operator(), s.account, 10, &over, "")
	wantKind(t, err, domain.KindInvalid)
	wantPaths(t, err, "expiresAt")
	ahead := time.Now().Add(72 * time.Hour)
	available, _, err := s.GrantCredits(t.Context(), operator(), s.account, 10, &ahead, "")
	if err != nil || available != 110 {
		t.Errorf("%d credits, %v, want 110", available, err)
	}
}
