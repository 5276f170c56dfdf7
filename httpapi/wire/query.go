package wire

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Query reads query parameters as Object reads fields. An empty parameter counts as
// absent; of a repeated one the first counts. A parameter that is never looked at is
// unknown (WarnedOfQuery).
type Query struct {
	values   url.Values
	problems *Problems
	looked   map[string]bool // the names that were asked for; nil: they are not kept
}

func ParseQuery(raw string, p *Problems) Query {
	values, err := url.ParseQuery(raw)
	if err != nil {
		p.Add("query", "must be well formed")
	}
	return Query{values: values, problems: p}
}

// Query reads the request's own parameters, and keeps the names that are known.
func (r *Request) Query(p *Problems) Query {
	q := ParseQuery(r.URL.RawQuery, p)
	q.looked = r.Looked
	return q
}

// WarnedOfQuery names the parameters that no reader asked for in the answer's header
// X-Warnings (decisions, "Unknown keys"): a slip in one gives another answer than was
// meant. A refusal warns of none, because it may not have looked at all of them.
func (r *Request) WarnedOfQuery(ans Answer) Answer {
	if r.Audience == Public || ans.Status >= http.StatusMultipleChoices {
		return ans
	}
	values, _ := url.ParseQuery(r.URL.RawQuery)
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if r.Looked[name] || len(warnings) == MaxWarnings {
			continue
		}
		warning := strconv.QuoteToASCII(Clip(name, MaxSlip)) + " is not known and was ignored"
		for _, known := range slices.Sorted(maps.Keys(r.Looked)) {
			if len(name) <= MaxSlip && Near(name, known) {
				warning += didYouMean + known + "?"
				break
			}
		}
		warnings = append(warnings, warning)
	}
	if len(warnings) > 0 {
		ans.Header = maps.Clone(ans.Header)
		if ans.Header == nil {
			ans.Header = http.Header{}
		}
		ans.Header[warningsHeader] = []string{strings.Join(warnings, ", ")}
	}
	return ans
}

const warningsHeader = "X-Warnings"

// Text gives the parameter; it refuses a text that Postgres cannot store.
func (q Query) Text(name string) string {
	if q.looked != nil {
		q.looked[name] = true
	}
	s := q.values.Get(name)
	if problem := TextProblem(s); problem != "" {
		q.problems.Add(name, "%s", problem)
		return ""
	}
	return s
}

func (q Query) Integer(name string, whenAbsent, least, most int) int {
	s := q.Text(name)
	if s == "" {
		return whenAbsent
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		q.problems.Add(name, "must be a whole number from %d to %d", least, most)
		return whenAbsent
	}
	return n
}

// OneOf reads a word out of a closed list, in any case; absent it is empty.
func (q Query) OneOf(name string, values []string) string {
	s := q.Text(name)
	one, listed := Among(values, s)
	if s != "" && !listed {
		q.problems.Add(name, "must be %s", OneOfWords(values))
	}
	return one
}

// The ISO 8601 forms that are understood. Without a zone it is UTC.
var timeLayouts = []string{
	time.RFC3339Nano,
	"2006-01-02T15:04:05.999999999Z0700",
	"2006-01-02T15:04Z07:00",
	"2006-01-02T15:04:05.999999999",
	"2006-01-02T15:04",
	time.DateOnly,
}

// Time reads an ISO 8601 time. A "+" that was not escaped arrives as a blank
// and still parses.
func (q Query) Time(name string) *time.Time {
	s := q.Text(name)
	if s == "" {
		return nil
	}
	if i := strings.LastIndexByte(s, ' '); i > len(time.DateOnly) {
		s = s[:i] + "+" + s[i+1:]
	}
	t := parseTime(s)
	if t == nil {
		q.problems.Add(name, "must be an ISO 8601 date or time")
	}
	return t
}

// parseTime reads an ISO 8601 date or time, in every spelling of RFC 3339; nil: it is none.
func parseTime(s string) *time.Time {
	s = strings.ToUpper(s) // "t" and "z"
	if n := len(time.DateOnly); len(s) > n && (s[n] == ' ' || s[n] == '_') {
		s = s[:n] + "T" + s[n+1:]
	}
	if before, after, leap := strings.Cut(s, ":60"); leap && len(before) == len("2006-01-02T15:04") {
		s = before + ":59" + after
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			t = t.UTC()
			return &t
		}
	}
	return nil
}

// NamesMoment says whether the request has ?asOf=.
func (r *Request) NamesMoment() bool {
	var p Problems
	return ParseQuery(r.URL.RawQuery, &p).Text("asOf") != "" // the handler reports any problem of the query
}
