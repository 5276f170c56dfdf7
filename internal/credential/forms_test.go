package credential_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/internal/credential"
	"humanqa/internal/testing/must"
)

// A form waits for the session that sent it, sealed, and not for ever.
func TestAFormWaitsForItsSession(t *testing.T) {
	t.Parallel()
	w := setup(t)
	session := func(personID, before string) (credential.Session, string) {
		token, err := w.Begin(t.Context(), personID, "1.2.3.4", "a browser", before)
		must.NoError(t, err)
		one, _, err := w.Session(t.Context(), token)
		must.NoError(t, err)
		return one, token
	}
	ann, token := session("ann", "")
	sameAnn, _ := session("ann", "")
	bob, _ := session("bob", "")
	id := uuid.New()
	form := credential.Form{Path: "/dashboard/keys", AccountID: "a1", Type: "text/plain", From: "/dashboard/keys", Body: []byte("scope=read&secret=hush\x00\xff")}
	must.NoError(t, w.KeepForm(t.Context(), ann, id, form))
	got, err := w.Form(t.Context(), ann, id)
	if err != nil || string(got.Body) != string(form.Body) || got.Path != form.Path || got.AccountID != "a1" || got.From != form.From {
		t.Errorf("the form is %+v, %v", got, err)
	}
	stranger := ann
	stranger.PersonID = "bob"
	for who, other := range map[string]credential.Session{"another browser of theirs": sameAnn, "another person": bob, "the id of another person": stranger} {
		if _, err := w.Form(t.Context(), other, id); !errors.Is(err, credential.ErrNoForm) {
			t.Errorf("for %s: %v", who, err)
		}
	}
	// A row that is moved to another session does not open.
	_, err = w.db.ExecContext(t.Context(), `INSERT INTO signin.forms SELECT $1, id, 'bob', sealed, expires_at FROM signin.forms`, bob.ID)
	must.NoError(t, err)
	if _, err := w.Form(t.Context(), bob, id); !errors.Is(err, credential.ErrNoForm) {
		t.Errorf("a moved row: %v", err)
	}
	var rows string
	must.NoError(t, w.db.Get(&rows, `SELECT string_agg(f::text, ' ') FROM signin.forms f`))
	if strings.Contains(rows, "hush") || strings.Contains(rows, "scope") {
		t.Error("the database shows the form")
	}

	for range 9 { // the newest wait, in whichever session
		must.NoError(t, w.KeepForm(t.Context(), sameAnn, uuid.New(), form))
		w.pass(1e9)
	}
	var waiting int
	must.NoError(t, w.db.Get(&waiting, `SELECT COUNT(*) FROM signin.forms WHERE person_id = 'ann'`))
	if _, err := w.Form(t.Context(), ann, id); waiting != 5 || !errors.Is(err, credential.ErrNoForm) {
		t.Errorf("%d forms wait, the oldest: %v", waiting, err)
	}

	must.NoError(t, w.KeepForm(t.Context(), ann, id, form))
	must.NoError(t, w.ForgetForm(t.Context(), ann, id))
	if _, err := w.Form(t.Context(), ann, id); !errors.Is(err, credential.ErrNoForm) {
		t.Errorf("once it is carried out: %v", err)
	}
	must.NoError(t, w.KeepForm(t.Context(), ann, id, form))
	w.pass(credential.FormFor)
	if _, err := w.Form(t.Context(), ann, id); !errors.Is(err, credential.ErrNoForm) {
		t.Errorf("after ten minutes: %v", err)
	}
	must.NoError(t, w.Sweep(t.Context()))
	must.NoError(t, w.KeepForm(t.Context(), ann, id, form))
	session("bob", token) // who signs in in Ann's browser
	must.NoError(t, w.db.Get(&waiting, `SELECT COUNT(*) FROM signin.forms`))
	if waiting != 0 {
		t.Errorf("%d forms outlive their time or their session", waiting)
	}
}
