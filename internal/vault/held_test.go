package vault_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

func TestAHeldSecretOpensForItsUseUntilItIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hold := func(name string, atMost time.Duration) {
		must.NoError(t, b.vault.Hold(t.Context(), account, name, "use", []byte(secret), atMost))
	}
	opens := func(account, name, use string) bool {
		plain, err := b.open(t).Held(t.Context(), account, name, use) // also in another process
		return err == nil && string(plain) == secret
	}
	hold("a", time.Hour)
	hold("a", time.Hour) // a repeat
	if !opens(account, "a", "use") {
		t.Error("it does not open")
	}
	for _, wrong := range [][3]string{{account, "a", "other"}, {"acc-2", "a", "use"}, {account, "b", "use"}} {
		if opens(wrong[0], wrong[1], wrong[2]) {
			t.Errorf("it opens for %q", wrong)
		}
	}
	var rows string
	must.NoError(t, b.db.GetContext(t.Context(), &rows, "SELECT string_agg(held::text, '') FROM vault.held"))
	if strings.Contains(rows, secret) {
		t.Error("the secret lies in the clear")
	}
	must.NoError(t, b.vault.Forget(t.Context(), account, "a"))
	if _, err := b.vault.Held(t.Context(), account, "a", "use"); !errors.Is(err, domain.ErrShredded) {
		t.Errorf("a forgotten one: %v", err)
	}
	hold("late", 0)
	if opens(account, "late", "use") {
		t.Error("it opens after its time")
	}
	hold("kept", time.Hour)
	must.NoError(t, b.vault.Shred(t.Context(), account))
	must.NoError(t, b.vault.ForgetExpired(t.Context()))
	left := -1
	must.NoError(t, b.db.GetContext(t.Context(), &left, "SELECT count(*) FROM vault.held"))
	if left != 0 {
		t.Errorf("%d secrets are left", left)
	}
}
