package credential_test

import (
	"errors"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/internal/credential"
	"humanqa/internal/testing/must"
)

// Whoever knows a sign-in name can have it paused for strangers, not for its owner.
func TestABrowserInWhichItsOwnerSignedInPassesTheNamesPause(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("p1")
	try := func(password, address, device string) error {
		_, err := w.SignIn(t.Context(), "ann@example.com", password, address, device)
		return err
	}
	device, err := w.Remember(t.Context(), "p1", "")
	must.NoError(t, err)
	if same, err := w.Remember(t.Context(), "p1", device); err != nil || same != device {
		t.Errorf("the next sign-in changes the browser's token, %v", err)
	}
	stranger, err := w.Remember(t.Context(), "p2", device)
	if err != nil || stranger == device {
		t.Errorf("another person has the browser's token of the first, %v", err)
	}
	w.db.MustExec(`
		INSERT INTO signin.attempts
		SELECT who, 50, $1, $2
		FROM unnest(ARRAY['login:' || $3, 'address:6.6.6.6']) who`, w.now(), w.now().Add(5*time.Minute), domain.HashToken("ann@example.com"))
	for name, token := range map[string]string{"no browser": "", "an unknown one": "guess", "somebody else's": stranger} {
		if err := try(good, "1.2.3.4", token); !domain.IsKind(err, domain.KindRateLimited) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must.NoError(t, try(good, "6.6.6.6", device)) // in the office from which the guesses come, too

	// A browser that was stolen guesses no faster.
	for range 5 {
		if err := try("guess", "1.2.3.4", device); !errors.Is(err, credential.ErrWrong) {
			t.Fatal(err)
		}
	}
	if err := try(good, "1.2.3.4", device); !domain.IsKind(err, domain.KindRateLimited) {
		t.Errorf("the browser's sixth guess: %v", err)
	}
}

func TestBrowsersAreForgotten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	left := func() (n int) {
		must.NoError(t, w.db.Get(&n, `SELECT count(*) FROM signin.devices`))
		return n
	}
	w.joined("p1")
	for range 25 {
		_, err := w.Remember(t.Context(), "p1", "")
		must.NoError(t, err)
	}
	if n := left(); n != 20 {
		t.Errorf("%d browsers of one person are known", n)
	}
	w.joined("p1") // by a new link
	if n := left(); n != 0 {
		t.Errorf("after a new way in %d browsers are known", n)
	}
	device, err := w.Remember(t.Context(), "p1", "")
	must.NoError(t, err)
	w.pass(credential.DeviceFor)
	w.db.MustExec(`INSERT INTO signin.attempts VALUES ('login:' || $1, 50, $2, $3)`,
		domain.HashToken("ann@example.com"), w.now(), w.now().Add(5*time.Minute))
	if _, err := w.SignIn(t.Context(), "ann@example.com", good, "1.2.3.4", device); !domain.IsKind(err, domain.KindRateLimited) {
		t.Errorf("a browser of long ago: %v", err)
	}
	must.NoError(t, w.Sweep(t.Context()))
	if n := left(); n != 0 {
		t.Errorf("%d browsers are left", n)
	}
}
