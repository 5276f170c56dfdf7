package console_test

import (
	"regexp"
	"strings"
	"testing"

	"humanqa/domain/person"
	"humanqa/httpapi/ui"
)

var tags = regexp.MustCompile(`<[^>]*>`)

// Every page writes a number as the others do: with a thin space between its thousands.
func TestNumbersHaveOneFormat(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 12345, false)
	owner, operator := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account}), w.operates("Olga")
	if got := w.Call(operator, "POST", "/console/accounts/"+account+"/credits", form("amount", "23456", "reason", "A gift")); got.Status != 303 {
		t.Fatalf("a grant: %d %s", got.Status, got.Body)
	}
	whole, err := ui.Number(12345 + 23456)
	w.Must(err)
	shown := 0
	for path, g := range map[string]guest{
		"/dashboard": owner, "/dashboard/credits": owner, "/dashboard/credits/statement": owner, "/dashboard/jobs/new": owner,
		"/dashboard/batches/new": owner, "/dashboard/sessions/new": owner, "/dashboard/notifications": owner, "/dashboard/looks": owner,
		"/console": operator, "/console/accounts": operator, "/console/accounts/" + account: operator, "/console/acts": operator,
	} {
		text := tags.ReplaceAllString(w.has(g, path), " ")
		if strings.Contains(text, whole) {
			shown++
		}
		for _, plain := range []string{"12345", "23456", "35801"} {
			if at := strings.Index(text, plain); at >= 0 {
				t.Errorf("%s writes %q", path, text[max(0, at-40):min(len(text), at+20)])
			}
		}
	}
	if shown < 7 {
		t.Errorf("%d pages show the balance", shown)
	}
}
