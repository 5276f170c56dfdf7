package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime/multipart"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/guard"
)

// Form is a posted form as the API's readers take it; fields maps the form's fields to the
// API's names. Empty fields are left out.
func Form(r *Request, fields map[string]string) wire.Object {
	texts := map[string]string{}
	r.fields = map[string]string{}
	for field, name := range fields {
		r.fields[name] = field
		if text := strings.TrimSpace(r.PostFormValue(field)); text != "" {
			texts[name] = text
		}
	}
	return wire.Form(new(wire.Problems), texts)
}

// Object is a form with lists as the API's readers take it: value is the body of a request
// to the API.
func Object(value map[string]any) wire.Object {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = nil // never happens: texts, truths and lists of them always encode
	}
	return wire.ParseObject(raw, new(wire.Problems))
}

// schemeless is an address that begins with its host.
var schemeless = regexp.MustCompile(`^[^\s/:@?#\[\]]+(:[0-9]{1,5})?([/?#]\S*)?$`)

// Address adds a scheme to an address that a person typed without one: https, or http for
// this machine and for IP addresses, which rarely have certificates. Any other text stays.
func Address(typed string) string {
	typed = strings.TrimSpace(typed)
	if !schemeless.MatchString(typed) {
		return typed
	}
	u, err := url.Parse("http://" + typed)
	if err != nil || !strings.Contains(u.Hostname(), ".") && u.Hostname() != "localhost" {
		return typed
	}
	if u.Hostname() == "localhost" || net.ParseIP(u.Hostname()) != nil {
		return "http://" + typed
	}
	return "https://" + typed
}

// Addresses puts the schemes into the fields of a form that was sent.
func (r *Request) Addresses(fields ...string) {
	for _, field := range fields {
		if typed := r.PostFormValue(field); typed != "" {
			r.PostForm.Set(field, Address(typed))
		}
	}
}

// Named says which field of the form has the value of the API's path. Behind the field's
// name may stand its place among the fields of that name, such as role[2].
func (r *Request) Named(path, field string) {
	if r.fields == nil {
		r.fields = map[string]string{}
	}
	r.fields[path] = field
}

// fieldNamed is the form's field of an API's path.
func (r *Request) fieldNamed(path string) string {
	if field, there := r.fields[path]; there {
		return field
	}
	return path
}

// readForm parses a form that was sent, and refuses a field that the API would refuse,
// whichever page reads it. It does not read a body of another type, or an upload's body.
func (r *Request) readForm(upload bool) error {
	if upload || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		r.Form, r.PostForm = r.URL.Query(), url.Values{}
		r.MultipartForm = new(multipart.Form) // so that FormValue leaves the body alone
	} else if err := r.ParseForm(); err != nil {
		return domain.Invalid(domain.Detail{Path: "form", Message: "cannot be read"})
	}
	var wrong []domain.Detail
	for _, field := range slices.Sorted(maps.Keys(r.Form)) {
		if problem := wire.TextProblem(field); problem != "" {
			return domain.Invalid(domain.Detail{Path: "form", Message: problem})
		}
		for _, value := range r.Form[field] {
			if problem := wire.TextProblem(value); problem != "" {
				wrong = append(wrong, domain.Detail{Path: field, Message: problem})
				break
			}
		}
	}
	if len(wrong) > 0 {
		return domain.Invalid(wrong...)
	}
	return nil
}

// Text reads a field of at most limit characters, as the API reads one, without the blanks
// around it.
func (r *Request) Text(field string, limit int) (string, error) {
	text := strings.TrimSpace(r.PostFormValue(field))
	if n := utf8.RuneCountInString(text); n > limit {
		return "", domain.Invalid(domain.Detail{Path: field, Message: fmt.Sprintf("must have at most %d characters, has %d", limit, n)})
	}
	return text, nil
}

// Wrongs gives the errors that a person can correct, by the API's path; nil: the error is
// another one.
func Wrongs(err error) map[string]string {
	var known *domain.Error
	if !errors.As(err, &known) || known.Kind != domain.KindInvalid {
		return nil
	}
	out := map[string]string{}
	details, _ := known.Extras["details"].([]domain.Detail)
	for _, detail := range details {
		out[detail.Path] = detail.Message
	}
	return out
}

// worded joins the name of a field and the message about it. A message that has a subject
// of its own stands without the name, but behind the name of its part, such as "Test 3: ".
func worded(name, message string) string {
	if !strings.HasPrefix(message, "the ") {
		return name + " " + message
	}
	if hint, private := strings.CutPrefix(message, guard.ErrPrivate.Error()); private {
		message = "this host is private or reserved. Enter a public address"
		if hint = strings.TrimPrefix(hint, "; "); hint != "" {
			message += ". " + strings.TrimSuffix(Sentence(hint), ".")
		}
	}
	if part, _, is := strings.Cut(name, ": "); is {
		return part + ": " + message
	}
	return message
}

// HostOf gives the host of a URL, by which people recognise it.
func HostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	return strings.TrimPrefix(u.Host, "www.")
}

// SafeLink gives a URL that may stand in a link. The text of a client or a checker is
// never more than an address.
func SafeLink(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return raw
}

// OneLine puts a text on one line, so that its author cannot add lines to the page's own.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// ShellWord quotes a text as one word of a shell.
func ShellWord(s string) string { return `'` + strings.ReplaceAll(s, `'`, `'\''`) + `'` }
