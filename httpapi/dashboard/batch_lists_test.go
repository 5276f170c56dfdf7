package dashboard_test

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
)

// Each test of a batch has a checklist of its own, which follows its line: one that moves
// keeps its list, one that is rewritten in its place, too, and one that is gone takes it
// along. A wrong item names its test, and no list is lost by it.
func TestTheListsOfABatchFollowTheirTests(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	tab := w.Tab(owner)
	tab.Allow("422")
	// first gives the first item of each list, and how many tests have one.
	first := func() []string {
		t.Helper()
		return browsertest.Eval[[]string](tab, `[...document.querySelectorAll('.lists > *')].map((list) => list.querySelector('[name=item]').value)`)
	}
	previews := func(tests string, want ...string) {
		t.Helper()
		browsertest.Eval[bool](tab, "(document.querySelector('#tests').value = "+strconv.Quote(tests)+") !== ''")
		browsertest.Eval[bool](tab, "(document.querySelector('main').dataset.before = '1') === '1'")
		tab.Click("aside button[formaction]")
		tab.Wait("document.readyState === 'complete' && document.querySelector('main')?.dataset.before === undefined && document.querySelector('.lists') !== null")
		got := first()
		for i := range want {
			if want[i] == "written" && i < len(got) && got[i] != "" && !strings.HasPrefix(got[i], "Own") {
				got[i] = "written"
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %q the lists begin with %q, want %q", tests, got, want)
		}
	}
	tab.Open(w.Origin + "/dashboard/batches/new")
	previews("shop.example.com/a Alpha\nshop.example.com/b Beta", "written", "written")
	refill(tab, "#item-1-1", "Own alpha")
	refill(tab, "#item-2-1", "Own beta")
	previews("shop.example.com/c New\nshop.example.com/b Beta\nshop.example.com/a Alpha", "written", "Own beta", "Own alpha")
	refill(tab, "#item-1-1", "Own new")
	previews("shop.example.com/c New words\nshop.example.com/a Alpha", "Own new", "Own alpha")

	// What is wrong with an item names its test; the lists stay.
	browsertest.Eval[bool](tab, `(document.querySelector('#item-2-1').maxLength = 9999, document.querySelector('#item-2-1').value = 'Own '.repeat(300)) !== ''`)
	previews("shop.example.com/c New words\nshop.example.com/a Alpha", "Own new", strings.TrimSpace(strings.Repeat("Own ", 300)))
	tab.WaitText("Test 2, item 1: check must have at most 1000 characters")
	tab.Wait(`document.activeElement.id === 'item-2-1'`)
	// Without items a list is written anew.
	browsertest.Eval[bool](tab, `([...document.querySelectorAll('#test-2 [name=item]')].forEach((item) => { item.value = '' }), true)`)
	previews("shop.example.com/c New words\nshop.example.com/a Alpha", "Own new", "written")

	// The AI has its own list.
	got := w.Call(owner, "POST", "/dashboard/batches/preview", url.Values{"tests": {"shop.example.com/a Alpha"}, "type": {"ai_review"}})
	if got.Status != 200 || strings.Contains(got.Body, `name="item"`) || !strings.Contains(got.Body, "The AI works through its own list.") {
		t.Errorf("reviews: %d", got.Status)
	}
}
