package ai

import (
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

func TestReadingAPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		html string
		want page
	}{
		"nothing":                   {"", page{}},
		"only text":                 {"hello", page{}},
		"the first title":           {"<title>A &amp;\n B</title><svg><title>C</title></svg>", page{title: "A & B"}},
		"the first of each":         {`<html lang=en lang=de><html lang=fr>`, page{lang: "en"}},
		"upper case":                {`<META NAME=Viewport CONTENT="width=device-width">`, page{viewport: "width=device-width"}},
		"another meta":              {`<meta name=description content=x>`, page{}},
		"headings":                  {"<h1>a</h1><h3>b</h3><h2>c</h2><h7>d</h7>", page{headings: []int{1, 3, 2}}},
		"text in a script":          {`<script>"<h1><img src=x>"</script>`, page{}},
		"a comment":                 {"<!-- <h1>x</h1> -->", page{}},
		"an empty alt":              {"<img src=a alt>", page{images: 1}},
		"no alt":                    {"<img src=a><img>", page{images: 2, noAlt: []string{"a", "an image without a source"}}},
		"a label around":            {"<label>x <input name=a></label><input name=b>", page{fields: 2, unlabeled: []string{"b"}}},
		"a label before":            {"<label for=a>x</label><input id=a>", page{fields: 1}},
		"a label after":             {"<input id=a><label for=a>x</label>", page{fields: 1}},
		"a label for another":       {"<input id=a><label for=b>x</label>", page{fields: 1, unlabeled: []string{"a"}}},
		"a label for nothing":       {"<input type=text><label>x</label>", page{fields: 1, unlabeled: []string{"text"}}},
		"labels of ARIA":            {"<input aria-label=x><select aria-labelledby=y></select><textarea title=z></textarea>", page{fields: 3}},
		"blank ARIA":                {"<select aria-label=' '></select>", page{fields: 1, unlabeled: []string{"select"}}},
		"a placeholder is no label": {"<textarea name=t placeholder=x></textarea>", page{fields: 1, unlabeled: []string{"t"}}},
		"what nobody fills in":      {"<input type=hidden><input type=SUBMIT><input type=image><button>x</button>", page{}},
		"too many label ends":       {"</label></label><label><input></label>", page{fields: 1}},
		"mixed content": {
			`<script src="http://a"></script><link rel=stylesheet href=HTTP://b><link rel=canonical href=http://c><a href="http://d">x</a><img alt src=https://e>`,
			page{images: 1, insecure: []string{"http://a", "HTTP://b"}, links: []string{"http://d"}},
		},
		"cut in a tag": {"<title>x</title><img src=a alt", page{title: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := readPage([]byte(c.html), "text/html; charset=utf-8"); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestAPageIsReadInItsOwnCharacters(t *testing.T) {
	t.Parallel()
	for name, contentType := range map[string]string{
		"by the header": "text/html; charset=iso-8859-1",
		"by the page":   "text/html",
	} {
		got := readPage([]byte("<meta charset=iso-8859-1><title>caf\xe9</title>"), contentType)
		if got.title != "café" {
			t.Errorf("%s: %q", name, got.title)
		}
	}
}

func TestSameSiteLinks(t *testing.T) {
	t.Parallel()
	at, err := url.Parse("https://example.com:8443/dir/page?x#frag")
	must.NoError(t, err)
	p := page{links: []string{
		"a", "a#b", " /b ", "?x", "#top", "https://example.com:8443/c", "https://example.com/d", "http://example.com:8443/e",
		"//example.com:8443/f", "https://u@other.example.com/", "mailto:x@example.com", "javascript:alert(1)", "http://[::1", "\x00",
	}}
	want := []string{
		"https://example.com:8443/dir/a", "https://example.com:8443/b", "https://example.com:8443/c",
		"http://example.com:8443/e", "https://example.com:8443/f",
	}
	if got := p.sameSite(at, 20); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := p.sameSite(at, 2); !slices.Equal(got, want[:2]) {
		t.Errorf("got %q, want the first two", got)
	}
	p.base = "https://elsewhere.example.com/"
	if got := p.sameSite(at, 1); !slices.Equal(got, want[2:3]) {
		t.Errorf("with a base elsewhere: %q", got)
	}
}

// FuzzReadPage holds that no document breaks the reader or grows beyond its
// bounds.
func FuzzReadPage(f *testing.F) {
	f.Add(goodPage, "text/html")
	f.Add("<title>\xff\u202e</title><input><label for=", "text/html; charset=utf-16")
	f.Add(strings.Repeat("<label><div><img>", 2000), "")
	f.Fuzz(func(t *testing.T, html, contentType string) {
		p := readPage([]byte(html), contentType)
		if len([]rune(p.title)) > maxNote || len(p.links) > maxFound || len(p.noAlt) > maxFound || len(p.noAlt) > p.images {
			t.Errorf("out of bounds: %+v", p)
		}
	})
}
