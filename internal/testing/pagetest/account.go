package pagetest

import (
	"net/http"
	"strings"

	"humanqa/httpapi/ui"
)

// FormsOfAnotherAccount sends every form for the people of an account as if its page was
// opened in another account. Each must be refused with the names of both, and no event be
// appended. Paths with an id are left out: the id itself names the account.
func (s *Service) FormsOfAnotherAccount(g Guest, openedID, opened, now string) {
	s.T.Helper()
	before, err := s.Log.Head(s.T.Context())
	s.Must(err)
	walked := 0
	for _, p := range s.Site.Pages {
		if p.Method != http.MethodPost || p.For != ui.Viewers && p.For != ui.Developers && p.For != ui.Owners ||
			strings.Contains(p.Pattern, "{id}") {
			continue
		}
		walked++
		path := wildcards.ReplaceAllString(p.Pattern, "018f2f70-2222-7d3b-9a52-6f0a3b1c2d4e")
		for _, accept := range []string{"text/html", "application/json"} {
			got := s.Call(g, "POST", path, Form(ui.AccountField, openedID), "Accept", accept)
			if got.Status != http.StatusUnprocessableEntity ||
				!strings.Contains(got.Body, "This form was opened in "+opened+", but you look at "+now+" now.") {
				s.T.Errorf("%s of another account: %d %s", p.Pattern, got.Status, got.Header.Get("Location"))
			}
		}
	}
	if walked < 5 {
		s.T.Errorf("%d forms were sent: the test shows nothing", walked)
	}
	if after, err := s.Log.Head(s.T.Context()); err != nil || after != before {
		s.T.Errorf("forms of another account were carried out: %v", err)
	}
}
