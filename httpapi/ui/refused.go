package ui

import (
	"context"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"humanqa/domain"
)

// FormView is a form of a page, as its template shows it. One that was refused shows the values
// that were sent, each error at its field, and other errors above them.
type FormView struct {
	Command string   // the id of its command
	Account string   // the account in which it is opened; empty: none
	refused *refused // nil: it was not
}

// Form is the page's form that is sent to one of the paths.
func (f Frame) Form(paths ...string) FormView {
	form := FormView{Command: f.Command, Account: f.Account.ID}
	if f.refused != nil && slices.Contains(paths, f.refused.URL.Path) {
		form.refused = f.refused
	}
	return form
}

// Of tells forms of one path apart by pairs of a hidden field and its value.
func (f FormView) Of(hidden ...string) FormView {
	for i := 0; i+1 < len(hidden) && f.Refused(); i += 2 {
		if f.refused.PostForm.Get(hidden[i]) != hidden[i+1] {
			f.refused = nil
		}
	}
	return f
}

// Refused says that the form was refused.
func (f FormView) Refused() bool { return f.refused != nil }

// Value is the value of a field: the one that was sent, or else the page's.
func (f FormView) Value(field string, own any) any {
	if !f.Refused() || !f.refused.PostForm.Has(field) {
		return own
	}
	return strings.ReplaceAll(strings.ToValidUTF8(f.refused.PostForm.Get(field), ""), "\x00", "")
}

// Has says that a choice is made: in what was sent, or else by the page.
func (f FormView) Has(field, value string, own bool) bool {
	if !f.Refused() {
		return own
	}
	return slices.Contains(f.refused.PostForm[field], value)
}

// Field gives the attributes of a field for its hints, which are ids, and for its error. The
// first field with an error has the focus.
func (f FormView) Field(name string, hints ...string) template.HTMLAttr {
	attributes, focus := "", ""
	if f.Refused() && f.refused.wrong[name] != "" {
		attributes, hints = ` aria-invalid="true"`, append(hints, name+"-refused")
		if shown := f.refused.shown; len(shown) > 0 && shown[0] == name {
			focus = " autofocus"
		}
	}
	if len(hints) > 0 {
		attributes += ` aria-describedby="` + strings.Join(hints, " ") + `"`
	}
	return template.HTMLAttr(attributes + focus) // names of our templates
}

// Wrong is the error of a field, behind it; label is the name by which the page calls it.
func (f FormView) Wrong(name, label string) template.HTML {
	if !f.Refused() || f.refused.wrong[name] == "" {
		return ""
	}
	if !slices.Contains(f.refused.shown, name) {
		f.refused.shown = append(f.refused.shown, name)
	}
	return template.HTML(`<p class="wrong" id="` + name + `-refused">` + // a name of our templates
		template.HTMLEscapeString(Sentence(worded(label, f.refused.wrong[name]))) + `</p>`)
}

// Above are the errors of no field.
func (f FormView) Above() []string {
	if !f.Refused() {
		return nil
	}
	f.refused.placed = true
	return f.refused.above
}

// Focused says that the errors above the form have the focus.
func (f FormView) Focused() bool { return len(f.refused.shown) == 0 }

// refused is the request that sent a form, and its error.
type refused struct {
	*Request
	err    *domain.Error
	wrong  map[string]string // by field
	shown  []string          // fields with an error, in the page's order
	above  []string
	placed bool // the page has a place for above
}

func newRefused(r *Request, err *domain.Error) *refused {
	f := &refused{Request: r, err: err, wrong: map[string]string{}}
	for at, message := range Wrongs(err) {
		f.wrong[r.fieldNamed(at)] = message
	}
	return f
}

// settle finds the errors of no field once the page was rendered. It says whether the page
// shows every error.
func (f *refused) settle() bool {
	for _, field := range slices.Sorted(maps.Keys(f.wrong)) {
		if !slices.Contains(f.shown, field) {
			f.above = append(f.above, Sentence(strings.TrimSpace(worded(field, f.wrong[field]))))
		}
	}
	if len(f.wrong) == 0 {
		f.above = append(f.above, strings.TrimSpace(Sentence(f.err.Message)+" "+Sentence(f.err.Hint)))
	}
	return f.placed || len(f.above) == 0
}

// refusedKey is the context's mark of a request that shows a refused form again.
type refusedKey struct{}

func refusedIn(ctx context.Context) *refused {
	f, _ := ctx.Value(refusedKey{}).(*refused)
	return f
}

// again shows the page on which a refused form stood, with the form in it. A person can
// correct an invalid form, one in conflict, and an operator one that names what is not there.
func (s *Site) again(r *Request, page *Page, err error) (ans Answer, ok bool) {
	var known *domain.Error
	if r.Method != http.MethodPost || r.WantsJSON() || len(r.PostForm) == 0 || !errors.As(err, &known) ||
		known.Kind != domain.KindInvalid && known.Kind != domain.KindConflict &&
			(known.Kind != domain.KindNotFound || page.For != Operators) {
		return Answer{}, false
	}
	from := s.stood(r)
	return Answer{Status: StatusOf(known.Kind), Serve: http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		again := hr.Clone(context.WithValue(hr.Context(), refusedKey{}, newRefused(r, known)))
		again.Method, again.URL, again.RequestURI = http.MethodGet, from, from.RequestURI()
		again.Body, again.ContentLength, again.Form, again.PostForm, again.MultipartForm = http.NoBody, 0, nil, nil, nil
		for _, name := range []string{"Accept-Encoding", "If-None-Match", "Content-Type"} {
			again.Header.Del(name)
		}
		s.mux.ServeHTTP(w, again)
	})}, true
}

// stood is the page on which a form stood. Where the browser does not name it, it is the page
// at the form's path, or at the nearest path above.
func (s *Site) stood(r *Request) *url.URL {
	if from, err := url.Parse(s.back(r)); err == nil && r.Referer() != "" {
		return &url.URL{Path: path.Clean(from.Path), RawQuery: from.RawQuery}
	}
	for at := path.Clean(r.URL.Path); ; at = path.Dir(at) {
		page := &http.Request{Method: http.MethodGet, Host: r.Host, URL: &url.URL{Path: at}}
		if _, pattern := s.mux.Handler(page); pattern != "/" || at == "/" {
			return page.URL
		}
	}
}
