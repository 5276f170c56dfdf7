package credential_test

import (
	"testing"

	"humanqa/internal/credential"
	"humanqa/internal/testing/must"
)

// A Mac types an accent of its own behind the letter, a PC the letter with the accent.
const (
	ofAMac = "cafe\u0301"
	ofAPC  = "caf\u00e9"
)

func TestANameAndAPasswordWorkOnEverySystem(t *testing.T) {
	t.Parallel()
	w := setup(t)
	in := credential.Joining{Name: "Ann", Login: "Ann-" + ofAMac, Password: good + " " + ofAMac}
	_, err := w.JoinWithPassword(t.Context(), w.link("p1"), in, "1.2.3.4")
	must.NoError(t, err)
	for _, spelled := range []string{ofAMac, ofAPC} {
		if id, err := w.SignIn(t.Context(), "ann-"+spelled, good+"\u00a0"+spelled, "1.2.3.4", ""); err != nil || id != "p1" {
			t.Errorf("%+q: %q, %v", spelled, id, err)
		}
	}
	in.Login = "ann-" + ofAPC
	_, err = w.JoinWithPassword(t.Context(), w.link("p2"), in, "1.2.3.4")
	if got := paths(err); len(got) != 1 || got[0] != "login" {
		t.Errorf("a name of another person was taken: %v", err)
	}
}

func TestANameAndAPasswordOfAnOlderVersionWorkAndMove(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.joined("p1")
	hash := w.HashAsItIs(good + " " + ofAMac)
	older := func() {
		t.Helper()
		_, err := w.db.ExecContext(t.Context(), "UPDATE signin.people SET login = $1", "ann-"+ofAMac)
		must.NoError(t, err)
		_, err = w.db.ExecContext(t.Context(), "UPDATE signin.passwords SET hash = $1", hash)
		must.NoError(t, err)
	}
	older()
	must.NoError(t, w.ProvePassword(t.Context(), "p1", good+" "+ofAPC, "1.2.3.4"))
	older()
	if _, err := w.SignIn(t.Context(), "ann-"+ofAPC, good+" caf\u00e8", "1.2.3.4", ""); err == nil {
		t.Error("another password signs in")
	}
	for _, spelled := range []string{ofAPC, ofAMac, ofAPC} {
		if id, err := w.SignIn(t.Context(), "Ann-"+spelled, good+" "+spelled, "1.2.3.4", ""); err != nil || id != "p1" {
			t.Errorf("%+q: %q, %v", spelled, id, err)
		}
	}
	var stored struct{ Login, Hash string }
	must.NoError(t, w.db.GetContext(t.Context(), &stored, "SELECT login, hash FROM signin.people JOIN signin.passwords USING (person_id)"))
	if stored.Login != "ann-"+ofAPC || stored.Hash == hash {
		t.Errorf("not moved: %+v", stored)
	}
}
