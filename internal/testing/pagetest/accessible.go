package pagetest

import (
	"fmt"
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
// difference are checked on the last alone. A page is as wide in either scheme. So the
// screens that add no more than a picture are looked at when pictures are taken.
var screens = []struct {
	Name       string
	Wide, High int64
	Dark       bool
	Picture    bool // for that alone
}{
	{"dark-320", 320, 640, true, true}, {"light-320", 320, 640, false, false},
	{"light-390", 390, 844, false, true}, {"dark-390", 390, 844, true, false},
	{"dark-1280", 1280, 800, true, true}, {"light-1280", 1280, 800, false, false},
}

// brokenWords finds words, numbers and hosts that stand on two lines: those of up to 16
// characters, or of 12 on the narrowest screen. Code may break anywhere.
const brokenWords = `(() => {
	const found = [], range = document.createRange()
	const texts = document.createTreeWalker(document.querySelector('main') ?? document.body, NodeFilter.SHOW_TEXT)
	while (texts.nextNode()) {
		const node = texts.currentNode
		if (node.parentElement.closest('pre, code, .code, .hidden-text, textarea, option, template') !== null) continue
		for (const word of node.data.matchAll(/(?<![\p{L}\p{N}:.,@_/-])[\p{L}\p{N}:.,%]{2,16}(?![\p{L}\p{N}:.,@_/-])/gu)) {
			if (word[0].length > 12 && innerWidth <= 320) continue
			range.setStart(node, word.index)
			range.setEnd(node, word.index + word[0].length)
			const lines = new Set([...range.getClientRects()].filter(r => r.width > 1).map(r => Math.round(r.top / 4)))
			if (lines.size > 1) found.push(word[0] + ' in ' + node.parentElement.outerHTML.slice(0, 100))
		}
	}
	return found.slice(0, 6).join(' | ')
})()`

// zoomed is the width at 400 % of 1280 pixels.
const zoomed = 320

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
			tabs[page.As].Screen(1280, 800, false) // where OnEveryScreen leaves it
		}
		s.T.Run(page.Name, func(t *testing.T) {
			tab := tabs[page.As].In(t)
			if page.Allow != "" {
				tab.Allow(page.Allow)
			}
			tab.Open(s.Origin + page.Path)
			if page.Look != nil {
				page.Look(tab)
			}
			OnEveryScreen(t, tab, page.Name)
		})
	}
	return paths
}

// unlabelled finds a cell that does not have the heading of its column as its label, which a
// phone shows. The first cell of a row, a wide one, and one of buttons have none.
const unlabelled = `[...document.querySelectorAll('table.table')].flatMap(table => {
	const heads = [...table.tHead?.rows[0].cells ?? []].map(h => h.querySelector('.hidden-text') ? '' : h.textContent)
	return [...table.tBodies].flatMap(body => [...body.rows]).flatMap(row => [...row.cells].filter((cell, n) => {
		const at = [...row.cells].slice(0, n).reduce((sum, before) => sum + before.colSpan, 0)
		return (cell.dataset.label ?? '') !== (n === 0 || cell.colSpan > 1 ? '' : heads[at] ?? '')
	}))
})[0]?.outerHTML ?? ''`

// OnEveryScreen checks the open page: axe has no findings, and no element is wider than the
// screen. Pictures of all screens are taken for make shots, which has axe check them all.
func OnEveryScreen(t *testing.T, tab *browsertest.Tab, name string) {
	t.Helper()
	// Each form of an account's pages names the account in which it was opened.
	if lacks := browsertest.Eval[string](tab, `document.querySelector('.sidebar [data-palette]') === null ? '' :
		[...document.querySelectorAll('main form[method=post][action^="/dashboard"]')].find(f => f.elements['`+ui.AccountField+`'] === undefined)?.outerHTML ?? ''`); lacks != "" {
		t.Errorf("%s has a form that names no account: %s", name, lacks)
	}
	if wrong := browsertest.Eval[string](tab, unlabelled); wrong != "" {
		t.Errorf("%s has a cell without the name of its column: %s", name, wrong)
	}
	for n, screen := range screens {
		if screen.Picture && os.Getenv(browsertest.ShotsEnv) == "" {
			continue
		}
		tab.Screen(screen.Wide, screen.High, screen.Dark)
		what := name + " " + screen.Name
		// A bar that stays while the page is scrolled hides a part of what is under it.
		if wide := browsertest.Eval[int64](tab, "(scrollTo(0, 0), document.documentElement.scrollWidth)"); wide > screen.Wide {
			t.Errorf("%s is %d px wide: %s", what, wide, browsertest.Eval[string](tab, fmt.Sprintf(
				"[...document.querySelectorAll('main *')].filter(e => e.closest('.scroll') === null && e.getBoundingClientRect().right > %d).slice(0, 6).map(e => e.outerHTML.slice(0, 120)).join(' | ')", screen.Wide+1)))
		}
		if broken := browsertest.Eval[string](tab, brokenWords); broken != "" {
			t.Errorf("%s breaks within a word: %s", what, broken)
		}
		switch {
		case screen.Wide == zoomed: // nothing needs scrolling sideways (WCAG 1.4.10), and the strip of tabs shows the chosen one
			tab.Wait(`(at => at === null || at.getBoundingClientRect().left >= 0 && at.getBoundingClientRect().right <= 321)(document.querySelector('.sidebar nav [aria-current=page]'))`)
		case n < len(screens)-1:
			tab.AxeScreen(what)
		default:
			tab.Axe(what)
		}
		tab.Shot(name + "-" + screen.Name)
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
