package dashboard_test

import (
	"regexp"
	"testing"

	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/pagetest"
)

var prospect = regexp.MustCompile(`<p id="prospect">(.*?) <a`)

// While a test waits its page says whether checkers are online who may take it, and how
// long such tests took lately: of five tests at least, so that none is told by itself.
func TestAWaitingTestTellsWhatToExpect(t *testing.T) {
	t.Parallel()
	w := own(t)
	account, other := w.account("Acme", 100), w.account("Globex", 100)
	ann := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	waiting := w.test(account, "Checkout", nil)
	says := func(want string) {
		t.Helper()
		page := w.Call(ann, "GET", "/dashboard/jobs/"+waiting, nil).Body
		got := prospect.FindStringSubmatch(page)
		if want == "" && got == nil {
			return
		}
		if got == nil || got[1] != want {
			t.Errorf("the page says %q, want %q", got, want)
		}
	}
	says("No checker is online right now.")
	own := w.Checker("ann")
	w.Shown(w.Commands.GrantRole(t.Context(), pagetest.Operator(), ann.ID, person.Grant{Role: person.Checker, CheckerID: own}))
	says("No checker is online right now.") // she is of the account
	_, tester := w.Checks("Tess")
	says("Checkers are online.")
	for i := range 5 {
		if i == 4 {
			says("Checkers are online.")
		}
		c := w.claims(tester, w.test(other, "Of another account", nil))
		for n := range c.Checklist {
			c.checks(n, job.ItemPass, "")
		}
		c.completes("")
	}
	says("Checkers are online. Similar tests recently took about 1 minute.")
	pool, at, err := w.Commands.CreatePool(t.Context(), pagetest.Operator(), "Staff", "")
	w.Shown(at, err)
	w.Shown(w.Commands.ChoosePool(t.Context(), pagetest.Operator(), account, pool))
	says("No checker is online right now.")
	w.Shown(w.Commands.AddToPool(t.Context(), pagetest.Operator(), pool, tester))
	says("Checkers are online.") // and of the pool's tests too few are known
	w.claims(tester, waiting)
	says("")
}
