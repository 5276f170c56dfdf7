package pagetest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"humanqa/httpapi/ui"
	"humanqa/internal/testing/browsertest"
)

// Screens are the screens on which every page must look right. Axe, which takes longest
// by far, checks two: each width and each scheme once.
var Screens = []struct {
	Name       string
	Wide, High int64
	Dark, Axe  bool
}{
	{"light-1280", 1280, 800, false, true}, {"dark-1280", 1280, 800, true, false},
	{"light-390", 390, 844, false, false}, {"dark-390", 390, 844, true, true},
}

// Accessible checks the open page on every screen: axe has no findings, and no element
// is wider than the screen. When pictures are taken (make shots), axe checks all screens.
func Accessible(t *testing.T, tab *browsertest.Tab, name string) {
	t.Helper()
	// Each form of an account's pages names the account in which it was opened.
	if lacks := browsertest.Eval[string](tab, `document.querySelector('.sidebar [data-palette]') === null ? '' :
		[...document.querySelectorAll('main form[method=post][action^="/dashboard"]')].find(f => f.elements['`+ui.AccountField+`'] === undefined)?.outerHTML ?? ''`); lacks != "" {
		t.Errorf("%s has a form that names no account: %s", name, lacks)
	}
	for _, screen := range Screens {
		tab.Screen(screen.Wide, screen.High, screen.Dark)
		// A bar that stays while the page is scrolled hides a part of what is under it.
		browsertest.Eval[bool](tab, "(scrollTo(0, 0), true)")
		what := name + " " + screen.Name
		if screen.Axe || os.Getenv(browsertest.ShotsEnv) != "" {
			tab.Axe(what)
		}
		if wide := browsertest.Eval[int64](tab, "document.documentElement.scrollWidth"); wide > screen.Wide {
			t.Errorf("%s is %d px wide", what, wide)
		}
		tab.Shot(name + "-" + screen.Name)
	}
	// 400 % of 1280 pixels: nothing needs scrolling sideways (WCAG 1.4.10), and the strip of
	// tabs shows the one that is chosen.
	tab.Screen(320, 640, false)
	if wide := browsertest.Eval[int64](tab, "document.documentElement.scrollWidth"); wide > 320 {
		t.Errorf("%s is %d px wide at 400 %%: %s", name, wide, browsertest.Eval[string](tab,
			"[...document.querySelectorAll('main *')].filter(e => e.closest('.scroll') === null && e.getBoundingClientRect().right > 321).slice(0, 6).map(e => e.outerHTML.slice(0, 120)).join(' | ')"))
	}
	tab.Wait(`(at => at === null || at.getBoundingClientRect().left >= 0 && at.getBoundingClientRect().right <= 321)(document.querySelector('.sidebar nav [aria-current=page]'))`)
	tab.Shot(name + "-light-320")
	if os.Getenv(browsertest.ShotsEnv) != "" {
		tab.Screen(320, 640, true)
		tab.Shot(name + "-dark-320")
	}
}

// OpensAll checks that the paths lead to every page whose pattern begins so. The others are
// the patterns of answers that are no pages of their own: files, and parts for scripts.
func (s *Service) OpensAll(begins string, paths, others []string) {
	s.T.Helper()
	mux, want := http.NewServeMux(), map[string]bool{}
	for _, p := range s.Site.Pages {
		if p.Method != http.MethodGet {
			continue
		}
		mux.Handle(p.Pattern, http.NotFoundHandler())
		if strings.HasPrefix(p.Pattern, begins) && !p.Takes {
			want[p.Pattern] = true
		}
	}
	for _, other := range others {
		if !want[other] {
			s.T.Errorf("%s is not in the table of pages", other)
		}
		delete(want, other)
	}
	for _, path := range paths {
		_, pattern := mux.Handler(httptest.NewRequestWithContext(s.T.Context(), http.MethodGet, path, nil))
		delete(want, pattern)
	}
	for pattern := range want {
		s.T.Errorf("the test opens no page of %s", pattern)
	}
}
