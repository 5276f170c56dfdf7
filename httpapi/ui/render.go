package ui

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"iter"
	"math"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/wire"
	"humanqa/projections/people"
)

//go:embed templates/*.html
var shared embed.FS

// Frame holds the values of the layout around a page; the templates of pages find their
// own view in View.
type Frame struct {
	Title    string
	Path     string // of the page, for the marked entry of the navigation
	Person   *Person
	Account  people.Account
	Role     person.Role
	Accounts []people.PersonRole
	Live     string // the streams to follow, blanks between; empty: none
	Every    int    // seconds after which the page fetches itself anew; 0: never
	Home     string
	Waiting  int    // questions of checkers that wait for the account's people
	Note     string // the result of the form that led here; empty: none
	Command  string // the id of the command of each form
	View     any
	Rows     iter.Seq[any] // of Answer.Rows
	refused  *refused      // the form that is shown again; nil: none
}

// Sees says that the page's person has at least this role in the account.
func (f Frame) Sees(role person.Role) bool { return f.Role.Includes(role) }

// May says that the page's person has at least this role in the account, and that the
// account is not suspended.
func (f Frame) May(role person.Role) bool { return f.Sees(role) && !f.Account.Suspended }

// At says that the page lies at or below the path.
func (f Frame) At(where string) bool {
	return f.Path == where || where != "/dashboard" && where != "/console" && strings.HasPrefix(f.Path, where+"/")
}

// Operates says that the page is the console's, and its person an operator.
func (f Frame) Operates() bool {
	return f.Person != nil && f.Person.Has(person.Operator) && (f.Path == "/console" || strings.HasPrefix(f.Path, "/console/"))
}

// tagMark stands for the page's own ETag in a rendered page: an open page asks for a
// version newer than itself.
var tagMark = "tag-" + strings.ReplaceAll(uuid.NewString(), "-", "")

// renderer knows every template. A page's set is the layout, the shared parts, the
// parts of its package, and its own file. A set is parsed when it is first rendered:
// one takes some 200 kB, and most processes show few of the pages. A test parses each.
type renderer struct {
	pages map[string]func() (*template.Template, error)
	now   func() time.Time
}

func newRenderer(a *assets, now func() time.Time, sources ...fs.FS) (*renderer, error) {
	r := &renderer{pages: map[string]func() (*template.Template, error){}, now: now}
	base, err := template.New("layout").Option("missingkey=error").Funcs(r.functions(a)).ParseFS(shared, "templates/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse the layout: %w", err)
	}
	for _, source := range append([]fs.FS{shared}, sources...) {
		files, err := fs.Glob(source, "templates/*.html")
		if err != nil {
			return nil, err
		}
		// Parts, whose names begin with an underscore, come first, so that a
		// page may define the templates that they leave open.
		parts, err := fs.Glob(source, "templates/_*.html")
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			name := strings.TrimSuffix(path.Base(file), ".html")
			if r.pages[name] != nil && !strings.HasPrefix(name, "_") {
				return nil, fmt.Errorf("two packages have a template %s", name)
			}
			r.pages[name] = sync.OnceValues(func() (*template.Template, error) {
				set, err := base.Clone()
				if err != nil {
					return nil, err
				}
				if set, err = set.ParseFS(source, append(slices.Clone(parts), file)...); err != nil {
					return nil, fmt.Errorf("parse %s: %w", file, err)
				}
				return set, nil
			})
		}
	}
	return r, nil
}

func (r *renderer) functions(a *assets) template.FuncMap {
	return template.FuncMap{
		"asset":   a.url,
		"tag":     func() string { return tagMark },
		"ago":     func(t time.Time) string { return Ago(r.now(), t) },
		"until":   func(t time.Time) string { return Until(r.now(), t) },
		"next":    func(t time.Time) string { return Next(r.now(), t) },
		"past":    func(t *time.Time) bool { return t != nil && !r.now().Before(*t) },
		"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"moment":  func(t time.Time) template.HTML { return zoned(t, "moment", inUTC) },
		"day":     func(t time.Time) template.HTML { return zoned(t, "day", "2 Jan 2006") },
		"clock":   func(t time.Time) template.HTML { return zoned(t, "clock", "15:04 UTC") },
		"utc":     func(t time.Time) string { return t.UTC().Format(inUTC) },
		"utcday":  func(t time.Time) string { return t.UTC().Format("2 Jan 2006") },
		"date":    func(t time.Time) string { return t.UTC().Format("2 Jan") },
		"credits": Credits,
		"count":   Count,
		"initial": initial,
		"dict":    dict,
		"skipped": Skipped,
		"host":    HostOf,
		"link":    SafeLink,
		"asked":   asked,
		"tally":   job.Tally,
		"bar":     BarOf,
		"on":      On,
		"job":     JobState,
		"loop":    LoopState,
		"session": SessionState,
		"short":   short,
		"nth":     nth,
		"after":   func(n int) int { return n + 1 },
		"span":    Span,
		"number":  Number,
		"bytes":   Bytes,
		"phrase":  Sentence,
		"join":    func(list []string) string { return strings.Join(list, ", ") },
	}
}

const inUTC = "2 Jan 2006, 15:04 UTC"

// zoned is a time that the page's script shows in the zone of its reader (zones.ts); its
// title stays UTC. In an attribute, the template engine keeps only its text.
func zoned(t time.Time, as, layout string) template.HTML {
	t = t.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s" data-zone="%s">%s</time>`, // digits and words of ours
		t.Format(time.RFC3339), t.Format(inUTC), as, t.Format(layout)))
}

// errNoForm says that a page no longer shows the form that was refused.
var errNoForm = errors.New("the page has no place for the form's errors")

// page is a rendered page. One that shows a refused form is rendered twice: the first time
// shows which fields it has.
func (r *renderer) page(name string, f Frame) ([]byte, error) {
	var out bytes.Buffer
	err := r.render(&out, name, f)
	if err != nil || f.refused == nil {
		return out.Bytes(), err
	}
	if !f.refused.settle() {
		return nil, errNoForm
	}
	out.Reset()
	err = r.render(&out, name, f)
	return out.Bytes(), err
}

// render writes a page, with tagMark still in it.
func (r *renderer) render(w io.Writer, name string, f Frame) error {
	parsed, found := r.pages[name]
	if !found {
		return fmt.Errorf("there is no template %q", name)
	}
	set, err := parsed()
	if err != nil {
		return err
	}
	if err := set.ExecuteTemplate(w, "layout", f); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	return nil
}

// Ago puts the time since t into words.
func Ago(now, t time.Time) string {
	if d := now.Sub(t); d >= 45*time.Second {
		return Span(d) + " ago"
	}
	return "just now"
}

// Until puts the time until t into words.
func Until(now, t time.Time) string {
	switch d := t.Sub(now); {
	case d <= 0:
		return "overdue"
	case d < time.Minute:
		return "in less than a minute"
	default:
		return "in " + Span(d)
	}
}

// Next puts the time until t into words, for an event that happens by itself: at t it is
// due now, and not overdue.
func Next(now, t time.Time) string {
	if !t.After(now) {
		return "now"
	}
	return Until(now, t)
}

// Span puts a duration into words.
func Span(d time.Duration) string {
	switch {
	case d < time.Hour:
		return Count(max(1, int(d.Round(time.Minute)/time.Minute)), "minute")
	case d < 36*time.Hour:
		return Count(max(1, int(d.Round(time.Hour)/time.Hour)), "hour")
	case d < 60*24*time.Hour:
		return Count(int(d.Round(24*time.Hour)/(24*time.Hour)), "day")
	}
	return Count(int(d/(30*24*time.Hour)), "month")
}

// Count writes a number with a regular noun, in the singular or the plural.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if before, y := strings.CutSuffix(noun, "y"); y && !strings.HasSuffix(before, "a") {
		return Group(int64(n)) + " " + before + "ies"
	}
	return Group(int64(n)) + " " + noun + "s"
}

// Credits writes an amount with its unit.
func Credits(n domain.Credits) string {
	if n == 1 || n == -1 {
		return Group(int64(n)) + " credit"
	}
	return Group(int64(n)) + " credits"
}

// Number writes a number of any integer type, with thin spaces between thousands.
func Number(n any) (string, error) {
	v := reflect.ValueOf(n)
	if v.CanUint() && v.Uint() <= math.MaxInt64 {
		return Group(int64(v.Uint())), nil
	}
	if !v.CanInt() {
		return "", fmt.Errorf("a number is %T", n)
	}
	return Group(v.Int()), nil
}

// Bytes writes a size in the largest unit in which it is one or more.
func Bytes(n int64) string {
	switch {
	case n < 1e3:
		return Count(int(n), "byte")
	case n < 1e6:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	case n < 1e9:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// Group puts thin spaces between thousands.
func Group(n int64) string {
	digits := fmt.Sprint(max(n, -n))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	if n < 0 {
		return "\u2212" + digits
	}
	return digits
}

func initial(name string) string {
	for _, r := range strings.ToUpper(strings.TrimSpace(name)) {
		return string(r)
	}
	return "?"
}

// Skipped says why an item was skipped (decisions, "Item status").
func Skipped(reason string) string {
	if words := map[string]string{
		"blocked": "blocked by something else", "not_applicable": "it does not apply",
		"no_access": "no access", "out_of_time": "out of time", "disputed": "its verdict was overturned",
	}[reason]; words != "" {
		return words
	}
	return reason
}

// nth is the place of an item in its list, from 1; 0: it is not there.
func nth(items []job.ReportItem, id string) int {
	return 1 + slices.IndexFunc(items, func(i job.ReportItem) bool { return i.ID == id })
}

// asked is the beginning of a request's text, of at most 120 characters, on one line.
func asked(text string) string { return OneLine(wire.Clip(text, 120)) }

// short is the beginning of a commit's hash, as people read it.
func short(commit string) string { return string([]rune(commit)[:min(10, len([]rune(commit)))]) }

// dict gives a part several values by name.
func dict(pairs ...any) (map[string]any, error) {
	out := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("a name is %T", pairs[i])
		}
		out[key] = pairs[i+1]
	}
	return out, nil
}

// securityPolicy lets a page run only the service's scripts and styles, and lets no string
// become code.
const securityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; " +
	"img-src 'self' blob:; media-src 'self' blob:; " +
	"connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'"

func secure(h http.Header) {
	h.Set("Content-Security-Policy", securityPolicy)
	h.Set("Permissions-Policy", "microphone=(self), display-capture=(self), camera=()")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}
