package ui

import (
	"fmt"
	"net/http"
	"strings"

	"humanqa/domain"
)

// AccountField is the hidden field that names the account in which a form was opened. A
// person with several accounts may choose another one in another tab, before the form is
// sent.
const AccountField = "in-account"

// sameAccount refuses a form that was opened in another account than the one that its
// person looks at now. A path with an id needs no check: the id decides the account (Find).
func (r *Request) sameAccount(page *Page) error {
	opened := r.PostFormValue(AccountField)
	if r.Method != http.MethodPost || opened == "" || opened == r.Account.ID || page.For.role() == "" ||
		strings.Contains(page.Pattern, "{id}") {
		return nil
	}
	name := "another account"
	for _, m := range r.Person.Memberships() {
		if m.AccountID == opened {
			name = m.Account.Name
		}
	}
	err := domain.Invalid(domain.Detail{Message: fmt.Sprintf(
		"this form was opened in %s, but you look at %s now. Nothing was done. Send it again to act in %[2]s, or choose the other account first",
		name, r.Account.Name)})
	err.Message = "this form was opened in " + name + ", but you look at " + r.Account.Name + " now"
	return err.WithHint("nothing was done: open the form again in the account that you mean")
}
