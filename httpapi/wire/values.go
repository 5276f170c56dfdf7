package wire

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Unseen says that a person does not see the character in a text: a control, a mark of
// the reading direction, a line end, a blank, or one without width.
func Unseen(c rune) bool { return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Z) }

const (
	MaxWord = 100 // of a closed list
	maxID   = 64
)

// IDPattern matches every id of ours. Any other text names nothing, and never reaches a
// query.
var IDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Link checks a URL that only a person's browser will follow: evidence may lie
// on our own, private, address.
func (o Object) Link(name, raw string) {
	o.Check(name, raw, func(raw string) error {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("must be an http or https URL without a user name")
		}
		if strings.ContainsFunc(raw, Unseen) {
			return errors.New("must have no blanks and no characters that cannot be seen, or have them escaped")
		}
		return nil
	})
}

func (o Object) Check(name, raw string, rule func(string) error) {
	if raw == "" { // absent, or already noted
		return
	}
	if err := rule(raw); err != nil {
		o.Wrong(name, "%s", err)
	}
}

// ID reads a reference to something of ours, empty when it is absent. The command decides
// whether it exists.
func (o Object) ID(name string) string {
	s := o.Optional(name, maxID)
	if s != "" && !IDPattern.MatchString(s) {
		o.Wrong(name, "must be an id")
	}
	return s
}

// RequiredID is ID for a reference that must be there.
func (o Object) RequiredID(name string) string {
	s := o.Required(name, maxID)
	if strings.TrimSpace(s) != "" && !IDPattern.MatchString(s) {
		o.Wrong(name, "must be an id")
	}
	return s
}

// Moment reads an ISO 8601 date or time that may be absent or null.
func (o Object) Moment(name string) *time.Time {
	v, there := o.Given(name)
	if !there {
		return nil
	}
	text, ok := o.Text(name, v, MaxWord)
	at := parseTime(text)
	if ok && (at == nil || at.Year() < 1 || at.Year() > 9999) {
		o.Wrong(name, "must be an ISO 8601 date or time")
		at = nil
	}
	return at
}

// Cleared makes null of the fields that the list "clear" names, for clients that cannot
// send null (decisions, "PATCH"). Fields that null clears may be in it.
func (o Object) Cleared(clearable ...string) {
	for i, name := range OrZero(o.Strings("clear", len(clearable), MaxWord)) {
		at := fmt.Sprintf("clear[%d]", i)
		one, listed := Among(clearable, name)
		if !listed {
			o.Wrong(at, "must be %s", OneOfWords(clearable))
		} else if _, given := o.Given(one); given {
			o.Wrong(at, "must not name %s, which has a value in this body", one)
		} else {
			o.fields[one] = Value{raw: []byte("null")}
		}
	}
}

// NotNull refuses null for a field of a PATCH that cannot be cleared that way. hint is the
// way that clears it.
func (o Object) NotNull(name, hint string) {
	if v, there := o.Field(name); there && v.IsNull() {
		o.Problems.AddHinted(o.Path+name, hint, "must not be null")
	}
}

func Words[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// RequiredOneOf is OneOf for a text that must be there.
func (o Object) RequiredOneOf(name string, values ...string) string {
	s := o.Required(name, MaxWord)
	if one, listed := Among(values, s); listed || strings.TrimSpace(s) == "" {
		return one
	}
	o.Wrong(name, "must be %s", OneOfWords(values))
	return s
}

// Among is the value of a list that the text names, whatever its case.
func Among(values []string, text string) (value string, listed bool) {
	i := slices.IndexFunc(values, func(v string) bool { return strings.EqualFold(v, text) })
	if i < 0 {
		return "", false
	}
	return values[i], true
}

// Integers reads an array of whole numbers; nil when it is absent or null.
func (o Object) Integers(name string, limit int) []int {
	values, _ := o.List(name, limit)
	numbers := make([]int, len(values))
	for i, v := range values {
		at := fmt.Sprintf("%s[%d]", name, i)
		one := Object{Path: o.Path, fields: map[string]Value{at: v}, Problems: o.Problems}
		var ok bool
		if numbers[i], ok = one.Integer(at); !ok {
			one.Wrong(at, "must be a whole number")
		}
	}
	return numbers
}

// Boolean reads true or false; absent or null it is the default.
func (o Object) Boolean(name string, whenAbsent bool) bool {
	v, ok := o.Given(name)
	if !ok {
		return whenAbsent
	}
	value := string(v.raw) == "true"
	if !value && string(v.raw) != "false" {
		o.Wrong(name, "must be true or false")
	}
	return value
}
