package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	noteCookie = "__Host-humanqa-note"
	// noteFor is the time for which a note waits for the page that shows it.
	noteFor = time.Minute
)

// noted puts the sentence about the page's form (Page.Says) into a cookie. The page to
// which the answer leads shows it once.
func noted(page *Page, ans Answer) Answer {
	if page.Says != "" && (ans.Redirect != "" || ans.JSON != nil && !ans.Silent) {
		ans.Cookies = append(ans.Cookies, kept(noteCookie, url.QueryEscape(page.Says), noteFor))
	}
	return ans
}

// note takes the note that waits for a page, and removes its cookie. A script that fetches
// the page leaves both, since its reader would not see the note. Only words from the table
// of pages are shown.
func (s *Site) note(r *Request) (string, *http.Cookie) {
	if dest := r.Header.Get("Sec-Fetch-Dest"); r.Method != http.MethodGet || dest != "" && dest != "document" {
		return "", nil
	}
	words, err := url.QueryUnescape(r.cookie(noteCookie))
	if err != nil || words == "" {
		return "", nil
	}
	gone := kept(noteCookie, "", 0)
	gone.MaxAge = -1
	if !slices.ContainsFunc(s.Pages, func(p Page) bool { return p.Says == words }) {
		return "", gone
	}
	return strings.TrimSpace(words), gone
}
