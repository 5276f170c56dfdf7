package pagetest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"humanqa/httpapi/ui"
)

// Nobody is the name of a visitor without a session in Apart.
const Nobody = "nobody"

// Asker is a person of Apart, under a name.
type Asker struct {
	Name string
	Guest
}

// Apart says who may see which pages.
type Apart struct {
	// Pages are asked for in this order.
	Pages []ui.Page
	// Askers ask for each page in this order, after a visitor.
	Askers []Asker
	// Path fills the wildcards of a pattern.
	Path func(pattern string) string
	// Form is what a form sends; nil sends an empty one.
	Form func(ui.Page) url.Values
	// Wants gives the statuses that an answer may have. With none the page is not asked for.
	Wants func(p ui.Page, who string) []int
	// Hides gives the words that no answer may hold.
	Hides func(p ui.Page, who string) []string
	// Sees, if it is there, gets each answer.
	Sees func(p ui.Page, who string, got Response)
}

// Apart asks for every page as everybody. Each answer has its status and holds nothing of
// what belongs to others; a visitor is led to sign in.
func (s *Service) Apart(a Apart) {
	s.T.Helper()
	if len(a.Pages) < 5 {
		s.T.Errorf("%d pages are asked for: the test shows nothing", len(a.Pages))
	}
	for _, p := range a.Pages {
		name := p.Method + " " + p.Pattern
		var form url.Values
		if p.Method == http.MethodPost {
			form = url.Values{}
			if a.Form != nil {
				form = a.Form(p)
			}
		}
		path := a.Path(p.Pattern)
		if p.Upload {
			path += "?" + form.Encode()
		}
		for _, asks := range append([]Asker{{Name: Nobody}}, a.Askers...) {
			who := asks.Name
			wants := []int{http.StatusSeeOther}
			if who != Nobody {
				if wants = a.Wants(p, who); len(wants) == 0 {
					continue
				}
			}
			got := s.Call(asks.Guest, p.Method, path, form)
			if !slices.Contains(wants, got.Status) {
				s.T.Errorf("%s as %s: %d, want %d", name, who, got.Status, wants)
			}
			if to := got.Header.Get("Location"); who == Nobody && !strings.HasPrefix(to, "/signin?next=") {
				s.T.Errorf("%s leads a visitor to %q", name, to)
			}
			for _, hidden := range a.Hides(p, who) {
				if strings.Contains(got.Body, hidden) {
					s.T.Errorf("%s tells %s of %q", name, who, hidden)
				}
			}
			s.safe(name, got.Header)
			if a.Sees != nil {
				a.Sees(p, who, got)
			}
		}
	}
}

// safe checks the headers with which every page is answered.
func (s *Service) safe(name string, h http.Header) {
	s.T.Helper()
	policy := h.Get("Content-Security-Policy")
	for _, part := range []string{"require-trusted-types-for 'script'", "default-src 'none'", "font-src 'self';"} {
		if !strings.Contains(policy, part) {
			s.T.Errorf("%s: the policy is %q", name, policy)
		}
	}
	if h.Get("Cache-Control") == "" || h.Get("X-Content-Type-Options") != "nosniff" {
		s.T.Errorf("%s: headers %v", name, h)
	}
}
