package wire

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
	// BodyPath names the body as a whole in details.
	BodyPath = "body"
	// MaxKeys bounds the keys of one object, repeated ones too. No object of ours has
	// more than two dozen. Each further key costs memory and a few microseconds, and the
	// largest body with a hundred items has to be refused within a second.
	MaxKeys = 256
	// maxDigits and maxChoice bound, in bytes, the spelling of a number and of a word of
	// a closed list.
	maxDigits = 1024
	maxChoice = 1024
)

// Problems collects every offending path of one request, and the objects that were read of
// it.
type Problems struct {
	details []domain.Detail
	objects []Object          // in the order they were opened
	hints   map[string]string // next steps by path, which come before those by name
}

// Add notes a problem at a path. Only the first one there counts.
func (p *Problems) Add(path, format string, args ...any) {
	if slices.ContainsFunc(p.details, func(d domain.Detail) bool { return d.Path == path }) {
		return
	}
	p.details = append(p.details, domain.Detail{Path: path, Message: fmt.Sprintf(format, args...)})
}

// AddHinted is Add with a next step.
func (p *Problems) AddHinted(path, hint, format string, args ...any) {
	p.Add(path, format, args...)
	if p.hints == nil {
		p.hints = map[string]string{}
	}
	p.hints[path] = hint
}

// Count says how many offending paths there are so far.
func (p *Problems) Count() int { return len(p.details) }

// Err is the refusal that names all of them, sorted by path, or nil.
func (p *Problems) Err() error {
	if len(p.details) == 0 {
		return nil
	}
	slices.SortStableFunc(p.details, func(a, b domain.Detail) int { return comparePaths(a.Path, b.Path) })
	return domain.Invalid(p.details...).WithHint("%s", p.hint())
}

// RefusedFor chooses the refusal of a request: first a path that its caller must not use,
// then the problems in the request, then any other refusal of the path.
func RefusedFor(path, wrong error) error {
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

// Object is a JSON object, or a posted form, on its way into a command. Its readers note
// problems and return a zero value, so that one pass finds all of them. Unknown keys are
// ignored, but for a warning (warnings.go); of duplicates the last one counts.
type Object struct {
	Path     string // "", or a prefix such as "checklistItems[2]."
	fields   map[string]Value
	names    *[]string // the names that readers looked for
	Problems *Problems
}

// Value is the value of one field.
type Value struct {
	raw   json.RawMessage
	typed bool // raw is the text itself: a person typed it into a form
}

// IsNull holds for JSON's null, and for a form's field that was emptied.
func (v Value) IsNull() bool { return !v.typed && string(v.raw) == "null" }

func (v Value) begins(with byte) bool { return !v.typed && len(v.raw) > 0 && v.raw[0] == with }

// Form makes an object of a posted form: its texts by the names that readers look for,
// and the names of the emptied fields, which are null.
func Form(p *Problems, texts map[string]string, emptied ...string) Object {
	o := Object{fields: make(map[string]Value, len(texts)), names: new([]string), Problems: p}
	for name, text := range texts {
		o.fields[name] = Value{raw: json.RawMessage(text), typed: true}
	}
	for _, name := range emptied {
		o.fields[name] = Value{raw: json.RawMessage("null")}
	}
	return o
}

// Broken says that the object itself is wrong, not one of its fields.
func (o Object) Broken() bool { return o.fields == nil }

// Unread are the names, sorted, of the fields that no reader has looked for.
func (o Object) Unread() (names []string) {
	for name := range o.fields {
		if !slices.Contains(*o.names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Peek is a field's text, empty for any other value. Unlike a reader it leaves the field
// unknown.
func (o Object) Peek(name string) (text string) {
	v := o.fields[name]
	if v.typed {
		return string(v.raw)
	}
	if !v.begins('"') || json.Unmarshal(v.raw, &text) != nil {
		return ""
	}
	return text
}

// PeekScalar is Peek that takes a whole number, too.
func (o Object) PeekScalar(name string) string {
	if v := o.fields[name]; !v.typed && len(v.raw) > 0 && (v.raw[0] >= '0' && v.raw[0] <= '9') {
		return string(v.raw)
	}
	return o.Peek(name)
}

// Within is the object of a field, for bodies that others define. A field that is no
// object gives an empty one, and no problem.
func (o Object) Within(name string) Object {
	c := Object{Problems: new(Problems)}
	if v, there := o.fields[name]; there && v.begins('{') {
		c.read(name, v.raw)
	}
	return c
}

// IsEmpty says that the object has no field.
func (o Object) IsEmpty() bool { return len(o.fields) == 0 }

// HasScalar says that there is such a field, and that it is no list and no object.
func (o Object) HasScalar(name string) bool {
	v, there := o.fields[name]
	return there && !v.begins('{') && !v.begins('[')
}

// Looked are the names that readers looked for.
func (o Object) Looked() []string { return *o.names }

// Object reads the request's body, which must be one JSON object.
func (r *Request) Object(p *Problems) Object {
	r.Read = p
	return ParseObject(r.Content, p)
}

// OptionalObject is Object where an empty body, and null, stand for an empty object.
func (r *Request) OptionalObject(p *Problems) Object {
	r.Read = p
	if content := bytes.TrimSpace(r.Content); len(content) == 0 || string(content) == "null" {
		return ParseObject([]byte("{}"), p)
	}
	return ParseObject(r.Content, p)
}

// ParseObject reads a body that must be one JSON object. The values point into the body
// until a reader asks for them, so that a field without a reader costs no memory.
func ParseObject(body []byte, p *Problems) Object {
	o := Object{Problems: p}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	switch {
	case isUTF16(body):
		p.Add(BodyPath, "must be valid UTF-8, is UTF-16")
	case len(bytes.TrimSpace(body)) == 0:
		p.Add(BodyPath, "must be a JSON object, is empty")
	case !json.Valid(body): // bounds the depth, too
		p.Add(BodyPath, "must be valid JSON: %s", whereInvalid(body))
	case !utf8.Valid(body):
		p.Add(BodyPath, "must be valid UTF-8")
	default:
		o.read(BodyPath, body)
	}
	return o
}

// isUTF16 says that a body begins with UTF-16's mark, or with a character of ASCII in it.
func isUTF16(body []byte) bool {
	return len(body) > 1 && (body[0] == 0 != (body[1] == 0) || body[0] == 0xFE && body[1] == 0xFF || body[0] == 0xFF && body[1] == 0xFE)
}

// whereInvalid gives the syntax error of a body and its place, as an editor counts:
// lines, and characters in the line, from 1.
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

// read splits valid JSON into the object's fields.
func (o *Object) read(at string, raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		o.Problems.Add(at, "must be an object")
		return
	}
	o.fields = make(map[string]Value)
	keys := 0
	members(raw, func(name string, value json.RawMessage) bool {
		keys++
		o.fields[name] = Value{raw: value}
		return keys <= MaxKeys
	})
	if keys > MaxKeys {
		o.Problems.Add(at, "has more than %d keys", MaxKeys)
		o.fields = nil
		return
	}
	o.names = new([]string)
	o.Problems.objects = append(o.Problems.objects, *o)
}

// Field is the field's value, null too, unless it is absent. Every reader looks
// here: a name that none asks for is unknown.
func (o Object) Field(name string) (v Value, there bool) {
	if o.names != nil {
		*o.names = append(*o.names, name)
	}
	v, there = o.fields[name]
	return v, there
}

// Given is the field's value unless it is absent or null.
func (o Object) Given(name string) (Value, bool) {
	v, there := o.Field(name)
	return v, there && !v.IsNull()
}

func (o Object) Wrong(name, format string, args ...any) {
	o.Problems.Add(o.Path+name, format, args...)
}

// TextProblem says why Postgres cannot store a text of a request; empty: it can.
func TextProblem(text string) string {
	switch {
	case strings.ContainsRune(text, 0):
		return "must not contain NUL"
	case !utf8.ValidString(text):
		return "must be valid UTF-8"
	}
	return ""
}

// Text reads a value that must be a string of at most limit characters.
func (o Object) Text(name string, v Value, limit int) (string, bool) {
	n := 0
	switch {
	case v.typed:
		n = utf8.RuneCount(v.raw)
	case !v.begins('"'):
		o.Wrong(name, "must be a string")
		return "", false
	case len(v.raw)-2 > limit: // a long one is not unescaped only to be refused
		n = characters(v.raw)
	}
	if n > limit {
		o.Wrong(name, "must have at most %d characters, has %d", limit, n)
		return "", false
	}
	s := string(v.raw)
	if !v.typed {
		_ = json.Unmarshal(v.raw, &s) // it is valid
	}
	if problem := TextProblem(s); problem != "" {
		o.Wrong(name, "%s", problem)
		return "", false
	}
	return s, true
}

// Required reads a string that must be there and not be blank.
func (o Object) Required(name string, limit int) string {
	if o.fields == nil { // the object itself is wrong
		return ""
	}
	v, ok := o.Given(name)
	if !ok {
		o.Wrong(name, "is required")
		return ""
	}
	s, ok := o.Text(name, v, limit)
	if ok && strings.TrimSpace(s) == "" {
		o.Wrong(name, "must not be blank")
	}
	return s
}

// Optional reads a string that may be absent or null: then it is empty.
func (o Object) Optional(name string, limit int) string {
	v, ok := o.Given(name)
	if !ok {
		return ""
	}
	s, _ := o.Text(name, v, limit)
	return s
}

// Pointer reads a string that may be absent, null or empty: then it is nil.
func (o Object) Pointer(name string, limit int) *string {
	return OrNull(o.Optional(name, limit))
}

// Integer reads a whole number that may be absent or null. 60.0 is one.
func (o Object) Integer(name string) (int, bool) {
	v, ok := o.Given(name)
	if !ok {
		return 0, false
	}
	raw := v.raw
	if len(raw) == 0 || !digit(raw[0]) && raw[0] != '-' {
		o.Wrong(name, "must be a number")
		return 0, false
	}
	if len(raw) > maxDigits {
		o.Wrong(name, "must be a whole number")
		return 0, false
	}
	if n, err := strconv.ParseInt(string(raw), 10, 32); err == nil {
		return int(n), true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		o.Wrong(name, "must be a whole number")
		return 0, false
	}
	return int(f), true
}

// OneOf reads a string out of a closed list, in any case; absent or null it is the default.
func (o Object) OneOf(name, whenAbsent string, values ...string) string {
	v, ok := o.Given(name)
	if !ok {
		return whenAbsent
	}
	if v.begins('"') && len(v.raw) > maxChoice { // not unescaped only to be refused
		v.raw = json.RawMessage(`""`)
	}
	s, ok := o.Text(name, v, maxChoice)
	if one, listed := Among(values, s); listed {
		return one
	}
	if ok {
		o.Wrong(name, "must be %s", OneOfWords(values))
	}
	return s
}

func OneOfWords(values []string) string {
	if len(values) == 1 {
		return values[0]
	}
	return strings.Join(values[:len(values)-1], ", ") + " or " + values[len(values)-1]
}

// Child reads an object that may be absent or null.
func (o Object) Child(name string) (Object, bool) {
	v, ok := o.Given(name)
	if !ok {
		return Object{}, false
	}
	c := Object{Path: o.Path + name + ".", Problems: o.Problems}
	c.read(o.Path+name, v.raw)
	return c, c.fields != nil
}

// List reads the values of an array that may be absent or null, at most limit
// of them; ok says that the key was given and holds an array.
func (o Object) List(name string, limit int) (values []Value, ok bool) {
	v, ok := o.Given(name)
	if !ok {
		return nil, false
	}
	if !v.begins('[') {
		o.Wrong(name, "must be an array")
		return nil, false
	}
	many := false
	elements(v.raw, func(value json.RawMessage) bool {
		if many = len(values) == limit; !many {
			values = append(values, Value{raw: value})
		}
		return !many
	})
	if many {
		o.Wrong(name, "must have at most %d entries", limit)
		return nil, false
	}
	return values, true
}

// Objects reads an array of objects.
func (o Object) Objects(name string, limit int) []Object {
	values, _ := o.List(name, limit)
	var out []Object
	for i, v := range values {
		at := fmt.Sprintf("%s%s[%d]", o.Path, name, i)
		c := Object{Path: at + ".", Problems: o.Problems}
		c.read(at, v.raw)
		if c.fields != nil {
			out = append(out, c)
		}
	}
	return out
}

// Strings reads an array of strings; nil when it is absent or null.
func (o Object) Strings(name string, entries, limit int) *[]string {
	values, ok := o.List(name, entries)
	if !ok {
		return nil
	}
	out := make([]string, 0, len(values))
	for i, v := range values {
		if s, ok := o.Text(fmt.Sprintf("%s[%d]", name, i), v, limit); ok {
			out = append(out, s)
		}
	}
	return &out
}
