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

// screens are the screens on which every page must look right. Axe, which takes longest by
// far, checks each width and each scheme once; its rules for which the screen makes no
// difference are checked on the first alone. A page is as wide in either scheme. So the
// screens that add no more than a picture are looked at when pictures are taken.
var screens = []struct {
	Name       string
	Wide, High int64
	Dark       bool
	Picture    bool // for that alone
}{
	{"light-1280", 1280, 800, false, false}, {"dark-1280", 1280, 800, true, true},
	{"light-390", 390, 844, false, true}, {"dark-390", 390, 844, true, false},
}

// Seen is a page in one of its states, as a person sees it.
type Seen struct {
	Name, Path string
	As         Guest
	// Look, if there is one, checks the page once it is open, before the walk does.
	Look func(*browsertest.Tab)
	// Allow is a complaint of the browser that the page causes.
	Allow string
}

// Sees makes pages that the guest sees, from pairs of name and path.
func (g Guest) Sees(pairs ...string) (seen []Seen) {
	for i := 0; i < len(pairs); i += 2 {
		seen = append(seen, Seen{Name: pairs[i], Path: pairs[i+1], As: g})
	}
	return seen
}

// Accessible opens each page and checks it on every screen, in one tab for each person. It
// gives the paths.
func (s *Service) Accessible(pages ...Seen) (paths []string) {
	s.T.Helper()
	tabs := map[Guest]*browsertest.Tab{}
	for _, page := range pages {
		paths = append(paths, page.Path)
		if tabs[page.As] == nil {
			tabs[page.As] = s.Tab(page.As)
		}
		s.T.Run(page.Name, func(t *testing.T) {
			tab := tabs[page.As].In(t)
			if page.Allow != "" {
				tab.Allow(page.Allow)
			}
			tab.Screen(screens[0].Wide, screens[0].High, screens[0].Dark)
			tab.Open(s.Origin + page.Path)
			if page.Look != nil {
				page.Look(tab)
			}
			OnEveryScreen(t, tab, page.Name)
		})
	}
	return paths
}

// OnEveryScreen checks the open page: axe has no findings, and no element is wider than the
// screen. Pictures of all screens are taken for make shots, which has axe check them all.
func OnEveryScreen(t *testing.T, tab *browsertest.Tab, name string) {
	t.Helper()
	pictures := os.Getenv(browsertest.ShotsEnv) != ""
	// Each form of an account's pages names the account in which it was opened.
	if lacks := browsertest.Eval[string](tab, `document.querySelector('.sidebar [data-palette]') === null ? '' :
		[...document.querySelectorAll('main form[method=post][action^="/dashboard"]')].find(f => f.elements['`+ui.AccountField+`'] === undefined)?.outerHTML ?? ''`); lacks != "" {
		t.Errorf("%s has a form that names no account: %s", name, lacks)
	}
	for n, screen := range screens {
		if screen.Picture && !pictures {
			continue
		}
		tab.Screen(screen.Wide, screen.High, screen.Dark)
		what := name + " " + screen.Name
		// A bar that stays while the page is scrolled hides a part of what is under it.
		if wide := browsertest.Eval[int64](tab, "(scrollTo(0, 0), document.documentElement.scrollWidth)"); wide > screen.Wide {
			t.Errorf("%s is %d px wide", what, wide)
		}
		if n == 0 {
			tab.Axe(what)
		} else {
			tab.AxeScreen(what)
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
	if pictures {
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
