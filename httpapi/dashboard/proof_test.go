package dashboard_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain/person"
	"humanqa/httpapi/ui"
	"humanqa/internal/testing/pagetest"
	"humanqa/projections/access"
)

// A form that wants a proof is carried out as it was sent once the password is given, for
// the session that sent it, in the account in which it was sent.
func TestAFormWaitsForTheProofOfItsPerson(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, elsewhere := w.account("Acme", 0), w.account("Globex", 0)
	const password = "correct horse battery"
	joins := func(name string) guest {
		id, link := w.Invited(name, person.Grant{Role: person.Owner, AccountID: account})
		login := name + id
		got := w.Call(guest{}, "POST", link, url.Values{"name": {login}, "login": {login}, "password": {password}})
		cookie := regexp.MustCompile(pagetest.CookieName + `=([^;]+)`).FindStringSubmatch(strings.Join(got.Header.Values("Set-Cookie"), "\n"))
		if cookie == nil {
			t.Fatalf("joining: %d", got.Status)
		}
		return guest{ID: id, Token: cookie[1]}
	}
	ann, bob := joins("ann"), joins("bob")
	keys := func(account string) []access.IssuedKey {
		list, _, err := w.Reads.Access.Keys(t.Context(), account, access.Page{Limit: 10})
		w.Must(err)
		return list
	}
	form := func() url.Values {
		return url.Values{"command": {uuid.NewString()}, "scope": {"read"}, "days": {"30"}}
	}
	w.Prove(ann, "1 hour")
	sent := form()
	id := pagetest.Waiting(w.Call(ann, "POST", "/dashboard/keys", sent, "Referer", w.Origin+"/dashboard/keys"))
	if id != sent.Get("command") || len(keys(account)) != 0 {
		t.Fatalf("the form waits as %q, %d keys", id, len(keys(account)))
	}
	confirm := "/signin/confirm?" + url.Values{"form": {id}, "next": {"/dashboard/keys"}}.Encode()
	if page := w.Call(ann, "GET", confirm, nil); !strings.Contains(page.Body, `name="form" value="`+id+`"`) || !strings.Contains(page.Body, "Confirm your identity") {
		t.Errorf("the proof's page: %d", page.Status)
	}
	proof := url.Values{"form": {id}, "next": {"/dashboard/keys"}, "password": {password}}
	wrong := url.Values{"form": {id}, "next": {"/dashboard/keys"}, "password": {"not this one at all"}}
	if got := w.Call(ann, "POST", "/signin/confirm", wrong); got.Status != 401 || !strings.Contains(got.Body, id) {
		t.Errorf("a wrong password: %d, or it forgets the form", got.Status)
	}
	if got := w.Call(bob, "POST", "/signin/confirm", proof); got.Status != 409 || len(keys(account)) != 0 {
		t.Errorf("another person: %d", got.Status)
	}
	if got := w.Call(ann, "POST", "/signin/confirm", proof, "Sec-Fetch-Site", "cross-site"); got.Status != 403 {
		t.Errorf("from another site: %d", got.Status)
	}
	got := w.Call(ann, "POST", "/signin/confirm", proof)
	made := keys(account)
	if got.Status != 200 || !strings.Contains(got.Body, "Your new key") || len(made) != 1 || made[0].Scope != "read" || made[0].ExpiresAt == nil {
		t.Fatalf("after the proof: %d, %+v", got.Status, made)
	}
	if got := w.Call(ann, "POST", "/signin/confirm", proof); got.Status != 409 || !strings.Contains(got.Body, "does not wait any more") || len(keys(account)) != 1 {
		t.Errorf("confirmed twice: %d", got.Status)
	}

	// The other encoding of forms is kept, too; what the page says of it is the page's matter.
	w.Prove(ann, "1 hour")
	multi := w.Send(ann, "POST", "/dashboard/keys", strings.NewReader("--x\r\nContent-Disposition: form-data; name=\"scope\"\r\n\r\nread\r\n--x--\r\n"),
		"Content-Type", "multipart/form-data; boundary=x", "Sec-Fetch-Site", "same-origin")
	id = pagetest.Waiting(multi)
	if got := w.Call(ann, "POST", "/signin/confirm", url.Values{"form": {id}, "password": {password}}); id == "" || got.Status != 422 {
		t.Errorf("a multipart form: %q, %d", id, got.Status)
	}

	// The proof was given, and nothing more happened: one button is left.
	w.Prove(ann, "1 hour")
	w.Shown(w.Commands.GrantRole(t.Context(), pagetest.Operator(), ann.ID, person.Grant{Role: person.Owner, AccountID: elsewhere}))
	id = pagetest.Waiting(w.Call(ann, "POST", "/dashboard/keys", form()))
	w.Prove(ann, "0")
	if page := w.Call(ann, "GET", "/signin/confirm?form="+id, nil); !strings.Contains(page.Body, "Continue to send it") {
		t.Errorf("after a crash: %d", page.Status)
	}
	w.Call(ann, "POST", "/dashboard/account", url.Values{"account": {elsewhere}}) // in another tab
	if got := w.Call(ann, "POST", "/signin/confirm/resend", url.Values{"form": {id}}); got.Status != 200 || len(keys(account)) != 2 || len(keys(elsewhere)) != 0 {
		t.Errorf("in the account that was chosen meanwhile: %d, %d and %d keys", got.Status, len(keys(account)), len(keys(elsewhere)))
	}

	// They left the account since: nothing happens in another one.
	w.Call(ann, "POST", "/dashboard/account", url.Values{"account": {account}})
	w.Prove(ann, "1 hour")
	id = pagetest.Waiting(w.Call(ann, "POST", "/dashboard/keys", form()))
	w.Shown(w.Commands.RevokeRole(t.Context(), pagetest.Operator(), ann.ID, person.Grant{Role: person.Owner, AccountID: account}))
	w.Prove(ann, "0")
	if got := w.Call(ann, "POST", "/signin/confirm/resend", url.Values{"form": {id}}); got.Status != 404 || len(keys(elsewhere)) != 0 {
		t.Errorf("after they left the account: %d, %d keys elsewhere", got.Status, len(keys(elsewhere)))
	}
	w.Prove(ann, "1 hour")
	if got := w.Call(ann, "POST", "/dashboard/keys", form(), "Accept", "application/json"); got.Status != 403 || ui.ConfirmPath == got.Header.Get("Location") {
		t.Errorf("a script: %d", got.Status)
	}
}

// A form that comes after its session has ended is not kept, and the page says so.
func TestAFormWithoutASessionIsSaidToBeLost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	to := func(method string) string {
		got := w.Call(guest{}, method, "/dashboard/keys", url.Values{"name": {"Pipeline"}}, "Referer", w.Origin+"/dashboard/keys")
		if got.Status != 303 {
			t.Fatalf("%s: %d", method, got.Status)
		}
		return got.Header.Get("Location")
	}
	const lost = "The form that you sent was not saved"
	if page := w.Call(guest{}, "GET", to("POST"), nil); page.Status != 200 || !strings.Contains(page.Body, lost) ||
		!strings.Contains(page.Body, `name="next" value="/dashboard/keys"`) {
		t.Errorf("after a form: %d %s", page.Status, page.Body)
	}
	if page := w.Call(guest{}, "GET", to("GET"), nil); strings.Contains(page.Body, lost) {
		t.Error("who only opens a page is told of a form")
	}
}
