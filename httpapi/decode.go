package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"humanqa/domain"
)

const (
	// bodyPath names the body as a whole in details.
	bodyPath = "body"
	// maxKeys bounds the keys of one object, repeated ones too. No object of
	// ours has more than two dozen; what a body may hold beside them costs
	// memory and, a few microseconds each, time: a hundred items of the largest
	// body are to be refused within a second.
	maxKeys = 256
	// maxDigits and maxChoice bound, in bytes, how a number and a word of a
	// closed list may be spelled.
	maxDigits = 1024
	maxChoice = 1024
)

// problems collects every offending path of one request, and what was read of
// it on the way.
type problems struct {
	details []domain.Detail
	objects []object          // in the order they were opened
	targets []target          // URLs under test
	hints   map[string]string // next steps, by path, that its name does not tell
}

// add notes what is wrong at a path. The first finding there is enough.
func (p *problems) add(path, format string, args ...any) {
	if slices.ContainsFunc(p.details, func(d domain.Detail) bool { return d.Path == path }) {
		return
	}
	p.details = append(p.details, domain.Detail{Path: path, Message: fmt.Sprintf(format, args...)})
}

// err is the refusal that names all of them, sorted by path, or nil.
func (p *problems) err() error {
	p.refuseTargets()
	if len(p.details) == 0 {
		return nil
	}
	slices.SortStableFunc(p.details, func(a, b domain.Detail) int { return comparePaths(a.Path, b.Path) })
	return domain.Invalid(p.details...).WithHint("%s", p.hint())
}

// refusedFor is what a request is refused for: first that its caller must not use what
// its path names, then what is wrong in it, then what else the path came to.
func refusedFor(path, wrong error) error {
	if wrong == nil || domain.IsKind(path, domain.KindForbidden) {
		return path
	}
	return wrong
}

// comparePaths orders paths as people read them: items[2] before items[10].
func comparePaths(a, b string) int {
	for a != "" && b != "" {
		if digit(a[0]) && digit(b[0]) {
			na, nb := leadingDigits(a), leadingDigits(b)
			if c := len(na) - len(nb); c != 0 {
				return c
			}
			if c := strings.Compare(na, nb); c != 0 {
				return c
			}
			a, b = a[len(na):], b[len(nb):]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func leadingDigits(s string) string {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return s[:n]
}

// object is a JSON object on its way into a request struct. Its readers note
// what is wrong and return a zero value, so that one pass finds everything.
// Unknown keys are ignored, but for a warning (warnings.go); of duplicates the
// last one counts.
type object struct {
	path     string // "", or a prefix such as "checklistItems[2]."
	fields   map[string]json.RawMessage
	names    *[]string // the names that readers looked for
	problems *problems
}

// object reads the request's body, which must be one JSON object.
func (r *request) object(p *problems) object {
	r.read = p
	return parseObject(r.body, p)
}

// optionalObject is object where an empty body stands for an empty object.
func (r *request) optionalObject(p *problems) object {
	r.read = p
	return parseOptional(r.body, p)
}

// parseObject reads a body that must be one JSON object. The values stay as
// they are, pointing into the body, until a reader asks for them: what nobody
// asks for costs no memory.
func parseObject(body []byte, p *problems) object {
	o := object{problems: p}
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		p.add(bodyPath, "must be a JSON object, is empty")
	case !json.Valid(body): // bounds the depth, too
		p.add(bodyPath, "must be valid JSON: %s", whereInvalid(body))
	case !utf8.Valid(body):
		p.add(bodyPath, "must be valid UTF-8")
	default:
		o.read(bodyPath, body)
	}
	return o
}

// whereInvalid says what keeps a body from being JSON, and where, as an editor
// counts: lines, and characters in the line, from 1.
func whereInvalid(body []byte) string {
	var wrong *json.SyntaxError
	if !errors.As(json.Unmarshal(body, new(json.RawMessage)), &wrong) {
		return "it is none"
	}
	before := body[:min(max(wrong.Offset-1, 0), int64(len(body)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d: %s", line, column, wrong)
}

// parseOptional is parseObject where an empty body stands for an empty object.
func parseOptional(body []byte, p *problems) object {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	return parseObject(body, p)
}

// read splits valid JSON into the object's fields.
func (o *object) read(at string, raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	if raw[0] != '{' {
		o.problems.add(at, "must be an object")
		return
	}
	o.fields = make(map[string]json.RawMessage)
	keys := 0
	members(raw, func(name string, value json.RawMessage) bool {
		keys++
		o.fields[name] = value
		return keys <= maxKeys
	})
	if keys > maxKeys {
		o.problems.add(at, "has more than %d keys", maxKeys)
		o.fields = nil
		return
	}
	o.names = new([]string)
	o.problems.objects = append(o.problems.objects, *o)
}

// field is the field's value, null too, unless it is absent. Every reader looks
// here: a name that none asks for is unknown.
func (o object) field(name string) (raw json.RawMessage, there bool) {
	if o.names != nil {
		*o.names = append(*o.names, name)
	}
	raw, there = o.fields[name]
	return raw, there
}

// given is the field's value unless it is absent or null.
func (o object) given(name string) (json.RawMessage, bool) {
	raw, there := o.field(name)
	return raw, there && !isNull(raw)
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

func (o object) wrong(name, format string, args ...any) {
	o.problems.add(o.path+name, format, args...)
}

// TextProblem is what is wrong with a text, wherever it was sent: Postgres has no value
// for it. Empty: nothing.
func TextProblem(text string) string {
	switch {
	case strings.ContainsRune(text, 0):
		return "must not contain NUL"
	case !utf8.ValidString(text):
		return "must be valid UTF-8"
	}
	return ""
}

// text reads a value that must be a string of at most limit characters.
func (o object) text(name string, raw json.RawMessage, limit int) (string, bool) {
	if raw[0] != '"' {
		o.wrong(name, "must be a string")
		return "", false
	}
	if len(raw)-2 > limit { // a long one is not unescaped only to be refused
		if n := characters(raw); n > limit {
			o.wrong(name, "must have at most %d characters, has %d", limit, n)
			return "", false
		}
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		o.wrong(name, "must be a string")
		return "", false
	}
	if problem := TextProblem(s); problem != "" {
		o.wrong(name, "%s", problem)
		return "", false
	}
	return s, true
}

// required reads a string that must be there and not be blank.
func (o object) required(name string, limit int) string {
	if o.fields == nil { // the object itself is what is wrong
		return ""
	}
	raw, ok := o.given(name)
	if !ok {
		o.wrong(name, "is required")
		return ""
	}
	s, ok := o.text(name, raw, limit)
	if ok && strings.TrimSpace(s) == "" {
		o.wrong(name, "must not be blank")
	}
	return s
}

// optional reads a string that may be absent or null: then it is empty.
func (o object) optional(name string, limit int) string {
	raw, ok := o.given(name)
	if !ok {
		return ""
	}
	s, _ := o.text(name, raw, limit)
	return s
}

// pointer reads a string that may be absent, null or empty: then it is nil.
func (o object) pointer(name string, limit int) *string {
	return orNull(o.optional(name, limit))
}

// integer reads a whole number that may be absent or null. 60.0 is one.
func (o object) integer(name string) (int, bool) {
	raw, ok := o.given(name)
	if !ok {
		return 0, false
	}
	if !digit(raw[0]) && raw[0] != '-' {
		o.wrong(name, "must be a number")
		return 0, false
	}
	if len(raw) > maxDigits {
		o.wrong(name, "must be a whole number")
		return 0, false
	}
	if n, err := strconv.ParseInt(string(raw), 10, 32); err == nil {
		return int(n), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		o.wrong(name, "must be a whole number")
		return 0, false
	}
	return int(f), true
}

// oneOf reads a string out of a closed list; absent or null it is the default.
func (o object) oneOf(name, whenAbsent string, values ...string) string {
	raw, ok := o.given(name)
	if !ok {
		return whenAbsent
	}
	if raw[0] == '"' && len(raw) > maxChoice { // not unescaped only to be refused
		raw = json.RawMessage(`""`)
	}
	s, ok := o.text(name, raw, maxChoice)
	if ok && !slices.Contains(values, s) {
		o.wrong(name, "must be %s", oneOfWords(values))
	}
	return s
}

func oneOfWords(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
}

// child reads an object that may be absent or null.
func (o object) child(name string) (object, bool) {
	raw, ok := o.given(name)
	if !ok {
		return object{}, false
	}
	c := object{path: o.path + name + ".", problems: o.problems}
	c.read(o.path+name, raw)
	return c, c.fields != nil
}

// list reads the values of an array that may be absent or null, at most limit
// of them; ok says that the key was given and holds an array.
func (o object) list(name string, limit int) (values []json.RawMessage, ok bool) {
	raw, ok := o.given(name)
	if !ok {
		return nil, false
	}
	if raw[0] != '[' {
		o.wrong(name, "must be an array")
		return nil, false
	}
	many := false
	elements(raw, func(value json.RawMessage) bool {
		if many = len(values) == limit; !many {
			values = append(values, value)
		}
		return !many
	})
	if many {
		o.wrong(name, "must have at most %d entries", limit)
		return nil, false
	}
	return values, true
}

// objects reads an array of objects.
func (o object) objects(name string, limit int) []object {
	values, _ := o.list(name, limit)
	var out []object
	for i, raw := range values {
		at := fmt.Sprintf("%s%s[%d]", o.path, name, i)
		c := object{path: at + ".", problems: o.problems}
		c.read(at, raw)
		if c.fields != nil {
			out = append(out, c)
		}
	}
	return out
}

// strings reads an array of strings; nil when it is absent or null.
func (o object) strings(name string, entries, limit int) *[]string {
	values, ok := o.list(name, entries)
	if !ok {
		return nil
	}
	out := make([]string, 0, len(values))
	for i, raw := range values {
		if s, ok := o.text(fmt.Sprintf("%s[%d]", name, i), raw, limit); ok {
			out = append(out, s)
		}
	}
	return &out
}
