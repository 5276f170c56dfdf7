package credential_test

import (
	"bytes"
	"sync"
	"testing"

	"humanqa/domain"
	"humanqa/internal/credential"
	"humanqa/internal/testing/must"
)

// A person changes their own ways in, never another person's, and keeps one.
func TestAPersonChangesTheirOwnWaysIn(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("ann")
	_, err := w.JoinWithPassword(t.Context(), w.link("bob"), credential.Joining{Name: "Bob", Login: "bob", Password: good}, "1.2.3.4")
	must.NoError(t, err)
	add := func(personID, name string, id byte) error {
		asked, err := w.AskForPasskey(t.Context(), personID, "Ann")
		must.NoError(t, err)
		return w.AddPasskey(t.Context(), personID, name, asked.Token, newPasskey(t, asked, bytes.Repeat([]byte{id}, 16)))
	}
	must.NoError(t, add("ann", "Laptop", 1))
	must.NoError(t, add("ann", "Phone", 2))
	if err := add("bob", "Mine", 1); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("another person's passkey: %v", err)
	}
	asked, err := w.AskForPasskey(t.Context(), "ann", "Ann")
	must.NoError(t, err)
	if err := w.AddPasskey(t.Context(), "bob", "Stolen", asked.Token, newPasskey(t, asked, bytes.Repeat([]byte{3}, 16))); err == nil {
		t.Error("a challenge of another person gave a passkey")
	}
	keys, err := w.PasskeysOf(t.Context(), "ann")
	must.NoError(t, err)
	if len(keys) != 2 || keys[0].Name != "Laptop" || keys[1].Name != "Phone" {
		t.Fatalf("the passkeys are %+v", keys)
	}
	for name, err := range map[string]error{
		"naming another person's": w.NamePasskey(t.Context(), "bob", keys[0].ID, "x"), "removing another person's": w.RemovePasskey(t.Context(), "bob", keys[0].ID),
		"an id that is none": w.RemovePasskey(t.Context(), "ann", "%%"),
	} {
		if !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	must.NoError(t, w.NamePasskey(t.Context(), "ann", keys[0].ID, " Old laptop "))
	must.NoError(t, w.Rename(t.Context(), "ann", "Ann Other"))
	if got := paths(w.Rename(t.Context(), "ann", " ")); len(got) != 1 || got[0] != "name" {
		t.Errorf("a blank name: %v", got)
	}

	if got := paths(w.SetPassword(t.Context(), "ann", "bob", "another good horse")); len(got) != 1 || got[0] != "login" {
		t.Errorf("a sign-in name that is taken: %v", got)
	}
	if got := paths(w.SetPassword(t.Context(), "ann", "b", "short")); len(got) != 2 {
		t.Errorf("a bad name and password: %v", got)
	}
	must.NoError(t, w.SetPassword(t.Context(), "ann", "ann2", "another good horse"))
	if _, err := w.SignIn(t.Context(), "ann2", "another good horse", "1.2.3.4", ""); err != nil {
		t.Errorf("the new password: %v", err)
	}
	if _, err := w.SignIn(t.Context(), "ann2", good, "1.2.3.4", ""); err == nil {
		t.Error("the old password works")
	}

	// Without a password the last passkey stays, however many are removed at once.
	_, err = w.db.ExecContext(t.Context(), `DELETE FROM signin.passwords WHERE person_id = 'ann'`)
	must.NoError(t, err)
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			if err := w.RemovePasskey(t.Context(), "ann", key.ID); err != nil && !domain.IsKind(err, domain.KindConflict) {
				t.Errorf("removing %s: %v", key.Name, err)
			}
		})
	}
	all.Wait()
	if keys, err := w.PasskeysOf(t.Context(), "ann"); err != nil || len(keys) != 1 {
		t.Errorf("%d passkeys are left, %v", len(keys), err)
	}
}
