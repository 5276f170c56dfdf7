package dashboard_test

import (
	"strings"
	"testing"

	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// A person changes their name and password, and adds, names and removes a passkey.
func TestOnesOwnAccount(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 0)
	id, link := w.Invited("Ann", person.Grant{Role: person.Owner, AccountID: account})
	ann := guest{ID: id}
	const password, another = "correct horse battery", "another good horse"
	login := "ann." + id + "@example.com"
	tab := browsertest.New(t)
	tab.Passkeys()
	fill := func(field, text string) {
		browsertest.Eval[string](tab, `document.querySelector('`+field+`').value = ''`)
		tab.Fill(field, text)
	}
	tab.Open(w.Origin + link)
	tab.Click("summary")
	for field, text := range map[string]string{"#login": login, "#password": password} {
		tab.Fill(field, text)
	}
	tab.Click("form[action^='/join/']:not([data-passkey]) button")
	tab.WaitText("Welcome to Acme")

	tab.Open(w.Origin + "/account")
	tab.WaitText("Add a second sign-in method.")
	fill("#name", "Ann Other")
	tab.Click("form[action='/account/name'] button")
	tab.Wait(`document.querySelector('h1').textContent === 'Ann Other'`)
	tab.Wait(`document.getElementById('note').textContent === 'Saved.'`)
	tab.Allow("422")
	fill("#login", "a")
	fill("#password", "not too short at all")
	tab.Click("form[action='/account/password'] button")
	tab.Wait(`document.activeElement.id === 'login' && document.activeElement.value === 'a'`)
	tab.WaitText("Sign-in name must have at least 3 characters.")
	if browsertest.Eval[bool](tab, `document.getElementById('note') !== null || document.getElementById('password').value !== ''`) {
		t.Error("a note is shown twice, or a password comes back")
	}
	tab.Axe("a refused form")
	tab.Open(w.Origin + "/account")

	w.Prove(ann, "1 hour")
	tab.Click("a[href='/account/passkeys/new']")
	tab.WaitText("Confirm your identity")
	fill("#password", password)
	tab.Click("form[action='/signin/confirm'] button")
	tab.WaitText("It helps you recognise this device later.")
	fill("#name", "Work laptop")
	tab.Click("form[data-passkey] button")
	tab.WaitText("Work laptop")
	if browsertest.Eval[bool](tab, `document.body.textContent.includes('Add a second sign-in method.')`) {
		t.Error("a second way in is advised to a person who has two")
	}
	tab.Click("#passkey-0 summary")
	fill("#passkey-name-0", "Old laptop")
	tab.Click("form[action='/account/passkeys/name'] button")
	tab.WaitText("Old laptop")

	// Another browser of hers is signed out by the new password, which waits for the proof.
	other, err := w.Credentials.Begin(t.Context(), id, "127.0.0.1", "Firefox", "")
	w.Must(err)
	w.Prove(ann, "1 hour")
	fill("#password", another)
	tab.Click("form[action='/account/password'] button")
	tab.WaitText("After that, the form that you sent is carried out.")
	tab.Click("form[data-passkey] button")
	tab.Wait(`location.pathname === '/account'`)
	if got := w.Call(guest{ID: id, Token: other}, "GET", "/account", nil); got.Status != 303 {
		t.Errorf("the other browser: %d", got.Status)
	}
	if _, err := w.Credentials.SignIn(t.Context(), login, another, "127.0.0.2", ""); err != nil {
		t.Errorf("the new password: %v", err)
	}
	tab.Click("#passkey-0 summary")
	tab.Click("form[action='/account/passkeys/remove'] button")
	tab.WaitText("Add a second sign-in method.")
	if list, err := w.Credentials.PasskeysOf(t.Context(), id); err != nil || len(list) != 0 {
		t.Errorf("%d passkeys are left, %v", len(list), err)
	}

	checker, _ := w.Checks("Carol")
	if page := w.Call(checker, "GET", "/account", nil); !strings.Contains(page.Body, `Tests wait in the <a href="/workbench">workbench</a>`) {
		t.Error("a checker does not read where tests wait")
	}
	bob := w.Joined("Bob", person.Grant{Role: person.Owner, AccountID: account})
	for path, want := range map[string]int{"/account/passkeys/remove": 404, "/account/passkeys/name": 404} {
		if got := w.Call(bob, "POST", path, pagetest.Form("passkey", "AQEBAQEBAQEBAQEBAQEBAQ", "name", "x")); got.Status != want {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
}
