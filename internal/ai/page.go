package ai

import (
	"bytes"
	"io"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"

	"humanqa/internal/fence"
)

// page holds the facts that a review looks for in a document. It is read token by token
// and not as a tree: a hostile document costs no more than its length.
type page struct {
	title     string
	viewport  string
	lang      string
	headings  []int // levels, in order
	images    int
	noAlt     []string // sources of images without an alt attribute
	fields    int
	unlabeled []string // names of form fields without a label
	insecure  []string // http: addresses that the page loads from or sends to
	links     []string // href as written
	base      string
}

// maxFound bounds each list of faults: a note shows a few.
const maxFound = 1000

type field struct{ id, name string }

// readPage never fails: it reads faulty HTML as a browser would.
func readPage(body []byte, contentType string) page {
	var r io.Reader = bytes.NewReader(body)
	if decoded, err := charset.NewReader(r, contentType); err == nil {
		r = decoded
	}
	var (
		p        page
		tokens   = html.NewTokenizer(r)
		labels   = 0 // open label elements
		labelled = make(map[string]bool)
		waiting  []field // fields that a later label may name
		inTitle  bool
	)
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			for _, f := range waiting {
				if f.id == "" || !labelled[f.id] {
					p.unlabeled = found(p.unlabeled, f.name)
				}
			}
			return p
		case html.TextToken:
			if inTitle && p.title == "" {
				p.title = fence.Clean(string(tokens.Text()), maxNote)
			}
		case html.EndTagToken:
			name, _ := tokens.TagName()
			switch atom.Lookup(name) {
			case atom.Label:
				labels = max(0, labels-1)
			case atom.Title:
				inTitle = false
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := tokens.Token()
			a := attributes(t)
			switch t.DataAtom {
			case atom.Title:
				inTitle = true
			case atom.Label:
				labels++
				labelled[a["for"]] = true
			case atom.Input, atom.Select, atom.Textarea:
				if !p.takes(t.DataAtom, a) {
					break
				}
				p.fields++
				if labels == 0 && !named(a) {
					waiting = append(waiting, field{a["id"], firstOf(a["name"], a["id"], a["type"], t.Data)})
				}
			}
			p.element(t.DataAtom, a)
		}
	}
}

// takes says whether the user types or chooses something in the field.
func (p *page) takes(tag atom.Atom, a map[string]string) bool {
	return tag != atom.Input ||
		!slices.Contains([]string{"hidden", "submit", "button", "reset", "image"}, strings.ToLower(a["type"]))
}

func named(a map[string]string) bool {
	return firstOf(a["aria-label"], a["aria-labelledby"], a["title"]) != ""
}

func (p *page) element(tag atom.Atom, a map[string]string) {
	switch tag {
	case atom.Html:
		p.lang = firstOf(p.lang, a["lang"])
	case atom.Base:
		p.base = firstOf(p.base, a["href"])
	case atom.Meta:
		if strings.EqualFold(a["name"], "viewport") {
			p.viewport = firstOf(p.viewport, a["content"])
		}
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		if len(p.headings) < maxFound {
			p.headings = append(p.headings, int(tag.String()[1]-'0'))
		}
	case atom.A:
		p.links = found(p.links, a["href"])
	case atom.Img:
		p.images++
		if _, ok := a["alt"]; !ok {
			p.noAlt = found(p.noAlt, firstOf(a["src"], a["srcset"], "an image without a source"))
		}
		p.loads(a["src"])
	case atom.Script, atom.Iframe, atom.Audio, atom.Video, atom.Source, atom.Embed, atom.Track:
		p.loads(a["src"])
	case atom.Object:
		p.loads(a["data"])
	case atom.Form:
		p.loads(a["action"])
	case atom.Link:
		if slices.Contains(strings.Fields(strings.ToLower(a["rel"])), "stylesheet") {
			p.loads(a["href"])
		}
	}
}

// loads notes an address that leaves TLS.
func (p *page) loads(address string) {
	if scheme, _, ok := strings.Cut(address, ":"); ok && strings.EqualFold(strings.TrimSpace(scheme), "http") {
		p.insecure = found(p.insecure, address)
	}
}

// sameSite resolves the page's links and keeps those to its own host, each
// once and at most limit.
func (p *page) sameSite(at *url.URL, limit int) []string {
	base := at
	if b, err := at.Parse(p.base); p.base != "" && err == nil {
		base = b
	}
	seen := map[string]bool{withoutFragment(at): true}
	var links []string
	for _, href := range p.links {
		to, err := base.Parse(strings.TrimSpace(href))
		if err != nil || to.Host != at.Host || (to.Scheme != "http" && to.Scheme != "https") {
			continue
		}
		link := withoutFragment(to)
		if seen[link] {
			continue
		}
		if seen[link] = true; len(links) < limit {
			links = append(links, link)
		}
	}
	return links
}

func withoutFragment(u *url.URL) string {
	c := *u
	c.Fragment, c.RawFragment = "", ""
	return c.String()
}

func attributes(t html.Token) map[string]string {
	a := make(map[string]string, len(t.Attr))
	for _, attr := range t.Attr {
		if _, ok := a[attr.Key]; !ok { // the first one counts
			a[attr.Key] = attr.Val
		}
	}
	return a
}

func found(list []string, what string) []string {
	if what == "" || len(list) == maxFound {
		return list
	}
	return append(list, what)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t := strings.TrimSpace(t); t != "" {
			return t
		}
	}
	return ""
}
