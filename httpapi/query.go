package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// query reads query parameters the way object reads fields. An empty parameter
// counts as absent, of a repeated one the first counts. What is never looked at is
// unknown (request.unknownParameters).
type query struct {
	values   url.Values
	problems *problems
	looked   map[string]bool // the names that were asked for; nil: nobody keeps them
}

func parseQuery(raw string, p *problems) query {
	values, err := url.ParseQuery(raw)
	if err != nil {
		p.add("query", "must be well formed")
	}
	return query{values: values, problems: p}
}

// query reads the request's own, and keeps which names are known.
func (r *request) query(p *problems) query {
	q := parseQuery(r.URL.RawQuery, p)
	q.looked = r.looked
	return q
}

// warnedOfQuery names the parameters that nobody asked for in the answer's header
// X-Warnings (decisions, "Unknown keys"): a slip in one gives another answer than
// was meant. Refusals have not looked at all of them, and warn of none.
func (r *request) warnedOfQuery(ans answer) answer {
	if r.audience == public || ans.status >= http.StatusMultipleChoices {
		return ans
	}
	values, _ := url.ParseQuery(r.URL.RawQuery)
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if r.looked[name] || len(warnings) == maxWarnings {
			continue
		}
		warning := strconv.QuoteToASCII(clip(name, maxSlip)) + " is not known and was ignored"
		for _, known := range slices.Sorted(maps.Keys(r.looked)) {
			if len(name) <= maxSlip && near(name, known) {
				warning += didYouMean + known + "?"
				break
			}
		}
		warnings = append(warnings, warning)
	}
	if len(warnings) > 0 {
		ans.header = maps.Clone(ans.header)
		if ans.header == nil {
			ans.header = http.Header{}
		}
		ans.header[warningsHeader] = []string{strings.Join(warnings, ", ")}
	}
	return ans
}

const warningsHeader = "X-Warnings"

// text gives the parameter; it refuses what no value of ours can hold.
func (q query) text(name string) string {
	if q.looked != nil {
		q.looked[name] = true
	}
	s := q.values.Get(name)
	if problem := TextProblem(s); problem != "" {
		q.problems.add(name, "%s", problem)
		return ""
	}
	return s
}

func (q query) integer(name string, whenAbsent, least, most int) int {
	s := q.text(name)
	if s == "" {
		return whenAbsent
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		q.problems.add(name, "must be a whole number from %d to %d", least, most)
		return whenAbsent
	}
	return n
}

// oneOf reads a word out of a closed list; absent it is empty.
func (q query) oneOf(name string, values []string) string {
	s := q.text(name)
	if s != "" && !slices.Contains(values, s) {
		q.problems.add(name, "must be %s", oneOfWords(values))
		return ""
	}
	return s
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

// time reads an ISO 8601 time. A "+" that was not escaped arrives as a blank
// and still parses.
func (q query) time(name string) *time.Time {
	s := q.text(name)
	if s == "" {
		return nil
	}
	if i := strings.LastIndexByte(s, ' '); i > len(time.DateOnly) {
		s = s[:i] + "+" + s[i+1:]
	}
	t := parseTime(s)
	if t == nil {
		q.problems.add(name, "must be an ISO 8601 date or time")
	}
	return t
}

// parseTime reads an ISO 8601 date or time; nil: it is none.
func parseTime(s string) *time.Time {
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			t = t.UTC()
			return &t
		}
	}
	return nil
}
