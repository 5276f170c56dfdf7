package ui

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"humanqa/domain"
)

// refillKey is the context's mark of a request that opens a page to fill its form again.
type refillKey struct{}

func refilling(ctx context.Context) bool { return ctx.Value(refillKey{}) != nil }

// memory keeps an answer.
type memory struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (m *memory) Header() http.Header         { return m.header }
func (m *memory) WriteHeader(status int)      { m.status = status }
func (m *memory) Write(b []byte) (int, error) { return m.body.Write(b) }

// refill answers a refused form with the page on which it stood. The fields have the typed
// values, each error stands at its field, and the first one has the focus. So no page has
// code for this. A conflict stands above the form. ok is false if the form is not found on
// that page, such as after a conflict that took its button away.
func (s *Site) refill(r *Request, err error) (ans Answer, ok bool) {
	var known *domain.Error
	if r.Method != http.MethodPost || r.WantsJSON() || refilling(r.Context()) || len(r.PostForm) == 0 ||
		!errors.As(err, &known) || known.Kind != domain.KindInvalid && known.Kind != domain.KindConflict {
		return Answer{}, false
	}
	from, errFrom := url.Parse(r.Referer())
	if errFrom != nil || from.Host != r.Host || !s.Serves(from.Path) {
		return Answer{}, false
	}
	again := r.Clone(context.WithValue(r.Context(), refillKey{}, true))
	again.Method, again.URL, again.RequestURI = http.MethodGet, &url.URL{Path: from.Path, RawQuery: from.RawQuery}, from.RequestURI()
	again.Body, again.ContentLength, again.Form, again.PostForm, again.MultipartForm = http.NoBody, 0, nil, nil, nil
	for _, name := range []string{"Accept-Encoding", "If-None-Match", "Content-Type"} {
		again.Header.Del(name)
	}
	page := &memory{header: http.Header{}, status: http.StatusOK}
	s.mux.ServeHTTP(page, again)
	if page.status != http.StatusOK || !strings.HasPrefix(page.header.Get("Content-Type"), "text/html") {
		return Answer{}, false
	}
	tree, errParse := html.Parse(&page.body)
	if errParse != nil {
		return Answer{}, false
	}
	form, same := formOf(tree, r)
	if !same {
		return Answer{}, false
	}
	fill(form, r.PostForm)
	mark(tree, form, r, known)
	var out bytes.Buffer
	if err := html.Render(&out, tree); err != nil {
		r.Log.WithError(err).Error("page not rendered")
		return Answer{}, false
	}
	return Answer{Status: StatusOf(known.Kind), page: out.Bytes()}, true
}

// Refill is the answer to a form that was refused as invalid or as a conflict: the page on
// which it stood, filled. It is not ok where the browser does not name that page.
func (r *Request) Refill(err error) (Answer, bool) { return r.site.refill(r, err) }

// marked puts the errors of a form into a page that shows the form again itself
// (Answer.Refused).
func (r *Request) marked(page []byte, err error) []byte {
	var known *domain.Error
	if !errors.As(err, &known) {
		return page
	}
	tree, errParse := html.Parse(bytes.NewReader(page))
	if errParse != nil {
		return page
	}
	form, _ := formOf(tree, r)
	if form == nil {
		return page
	}
	mark(tree, form, r, known)
	var out bytes.Buffer
	if err := html.Render(&out, tree); err != nil {
		return page
	}
	return out.Bytes()
}

// formOf finds the form that was sent: the first that posts to the path and whose hidden
// fields have the values that were sent. If there is none, it is the first that posts to
// the path, and isSame is false.
func formOf(tree *html.Node, r *Request) (form *html.Node, isSame bool) {
	for n := range tree.Descendants() {
		if n.DataAtom != atom.Form || !strings.EqualFold(attribute(n, "method"), "post") {
			continue
		}
		sent, same := posts(n, "action", r.URL.Path), true
		for field := range n.Descendants() {
			switch {
			case posts(field, "formaction", r.URL.Path):
				sent = true
			case field.DataAtom == atom.Input && attribute(field, "type") == "hidden" &&
				!slices.Contains([]string{CommandField, AccountField}, attribute(field, "name")):
				same = same && slices.Contains(r.PostForm[attribute(field, "name")], attribute(field, "value"))
			}
		}
		if sent && same {
			return n, true
		}
		if sent && form == nil {
			form = n
		}
	}
	return form, false
}

// posts says whether a form or its button sends to the path, without regard to a fragment.
func posts(n *html.Node, name, path string) bool {
	to, _, _ := strings.Cut(attribute(n, name), "#")
	return to == path
}

// own are the kinds of inputs whose values are not typed.
var own = []string{"hidden", "radio", "checkbox", "submit", "button", "file"}

// fill puts the sent values into the fields, but not into password fields.
func fill(form *html.Node, sent url.Values) {
	times := map[string]int{} // of a name: its values are in the order of its fields
	for n := range form.Descendants() {
		name := attribute(n, "name")
		values, there := sent[name]
		if there && name != "" && (n.DataAtom == atom.Textarea || n.DataAtom == atom.Select || n.DataAtom == atom.Input &&
			!slices.Contains(own, attribute(n, "type"))) {
			values = values[min(times[name], len(values)-1):]
			times[name]++
		}
		switch n.DataAtom {
		case atom.Input:
			switch attribute(n, "type") {
			case "hidden", "password", "file", "submit", "button":
			case "checkbox", "radio":
				set(n, "checked", "", name != "" && slices.Contains(values, attribute(n, "value")))
			default:
				if there {
					set(n, "value", shown(values[0]), true)
				}
			}
		case atom.Textarea:
			if there {
				for n.FirstChild != nil {
					n.RemoveChild(n.FirstChild)
				}
				n.AppendChild(&html.Node{Type: html.TextNode, Data: shown(values[0])})
			}
		case atom.Select:
			for option := range n.Descendants() {
				if option.DataAtom == atom.Option && there {
					set(option, "selected", "", optionValue(option) == values[0])
				}
			}
		}
	}
}

// shown turns a sent value into a text that a page can hold.
func shown(text string) string { return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "") }

// optionValue is the value that an option sends.
func optionValue(option *html.Node) string {
	for _, a := range option.Attr {
		if a.Key == "value" {
			return a.Val
		}
	}
	return strings.TrimSpace(wordsOf(option))
}

// mark puts each error at its field, and those of other paths above the form, with an
// error that has no path.
func mark(tree, form *html.Node, r *Request, refused *domain.Error) {
	var first *html.Node
	var others []string
	wrong := Wrongs(refused)
	if wrong == nil {
		others = append(others, strings.TrimSpace(Sentence(refused.Message)+" "+Sentence(refused.Hint)))
	}
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		field := fieldOf(form, r.fieldNamed(path))
		if field == nil {
			others = append(others, Sentence(strings.TrimSpace(path+" "+wrong[path])))
			continue
		}
		id := strings.TrimSpace(attribute(field, "id"))
		if id == "" {
			id = "refused-" + r.fieldNamed(path)
			set(field, "id", id, true)
		}
		said := element(atom.P, "class", "wrong", "id", id+"-refused")
		said.AppendChild(&html.Node{Type: html.TextNode, Data: Sentence(worded(labelOf(tree, id), wrong[path]))})
		field.Parent.InsertBefore(said, field.NextSibling)
		set(field, "aria-invalid", "true", true)
		set(field, "aria-describedby", strings.TrimSpace(attribute(field, "aria-describedby")+" "+id+"-refused"), true)
		unfold(field)
		if first == nil || before(form, field, first) {
			first = field
		}
	}
	if len(others) > 0 {
		box := element(atom.Div, "class", "notice notice-fail", "role", "alert", "id", "refused", "tabindex", "-1")
		list := element(atom.Ul)
		for _, words := range others {
			line := element(atom.Li)
			line.AppendChild(&html.Node{Type: html.TextNode, Data: words})
			list.AppendChild(line)
		}
		box.AppendChild(list)
		form.InsertBefore(box, form.FirstChild)
		if first == nil {
			first = box
		}
	}
	if first != nil {
		set(first, "autofocus", "", true)
	}
	unfold(cmp.Or(first, form))
}

// unfold opens all folded parts of the page that contain the node.
func unfold(n *html.Node) {
	for ; n != nil; n = n.Parent {
		if n.DataAtom == atom.Details {
			set(n, "open", "", true)
		}
	}
}

// before says that one node comes before another one in the form.
func before(form, one, other *html.Node) bool {
	for n := range form.Descendants() {
		if n == one || n == other {
			return n == one
		}
	}
	return false
}

// fieldOf finds the field that a person can see: name is its name, with its place among
// those of one name behind it, such as role[2].
func fieldOf(form *html.Node, name string) *html.Node {
	before := 0
	if at, place, indexed := strings.Cut(name, "["); indexed {
		name = at
		before, _ = strconv.Atoi(strings.TrimSuffix(place, "]")) // 0: the first
	}
	for n := range form.Descendants() {
		if (n.DataAtom == atom.Input || n.DataAtom == atom.Textarea || n.DataAtom == atom.Select) && attribute(n, "name") == name &&
			!slices.Contains([]string{"hidden", "radio", "checkbox", "submit"}, attribute(n, "type")) {
			if before == 0 {
				return n
			}
			before--
		}
	}
	return nil
}

// labelOf gives the words of the label of a field, without "(optional)".
func labelOf(tree *html.Node, id string) string {
	for n := range tree.Descendants() {
		if n.DataAtom == atom.Label && attribute(n, "for") == id {
			return strings.TrimSuffix(strings.Join(strings.Fields(wordsOf(n)), " "), " (optional)")
		}
	}
	return "It"
}

// wordsOf gives the text in a node.
func wordsOf(n *html.Node) string {
	var words strings.Builder
	for text := range n.Descendants() {
		if text.Type == html.TextNode {
			words.WriteString(text.Data)
		}
	}
	return words.String()
}

func element(kind atom.Atom, pairs ...string) *html.Node {
	n := &html.Node{Type: html.ElementNode, DataAtom: kind, Data: kind.String()}
	for i := 0; i+1 < len(pairs); i += 2 {
		set(n, pairs[i], pairs[i+1], true)
	}
	return n
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

// set gives an element the attribute, or takes it away.
func set(n *html.Node, name, value string, there bool) {
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if there {
		n.Attr = append(n.Attr, html.Attribute{Key: name, Val: value})
	}
}
