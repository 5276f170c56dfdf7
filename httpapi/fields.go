package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/subscription"
)

// Lengths, in characters (decisions, "Lengths").
const (
	maxURL                = 2048
	maxTitle              = 200
	maxDescription        = 5000
	maxProjectName        = 120
	maxProjectDescription = 2000
	maxItemText           = 1000
	maxItemKey            = 200
	maxItems              = 100
	maxCredential         = 256
	maxCredentialNotes    = 2000
	maxAccessInstructions = 4000
	maxTarget             = 100
	maxNote               = 2000
	maxMark               = 200
	maxSummary            = 5000
	maxWord               = 100 // of a closed list
	maxEventNames         = 50
	maxID                 = 64
)

// idPattern is what every id of ours looks like. Anything else names nothing,
// and never gets near a query.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// jobType reads a job type in either spelling, and keeps the spelling.
func (o object) jobType(name string) (t job.Type, echo string) {
	echo = o.required(name, maxWord)
	if strings.TrimSpace(echo) == "" {
		return "", ""
	}
	t, ok := job.ParseType(echo)
	if !ok {
		o.wrong(name, "must be %s", oneOfWords(words(job.Types())))
	}
	return t, echo
}

// severity reads a severity or one of its synonyms; absent it is whenAbsent.
func (o object) severity(whenAbsent job.Severity) job.Severity {
	const name = "severity"
	raw, ok := o.given(name)
	if !ok {
		return whenAbsent
	}
	s, ok := o.text(name, raw, maxWord)
	if !ok || s == "" {
		return whenAbsent
	}
	severity, ok := job.ParseSeverity(s)
	if !ok {
		o.wrong(name, "must be critical, major or minor")
	}
	return severity
}

// slaMinutes reads an SLA; 0 when it is absent or null.
func (o object) slaMinutes(name string) int {
	n, ok := o.integer(name)
	if ok && !slices.Contains(project.SLAMinutes(), n) {
		o.wrong(name, "must be %s", oneOfWords(numbers(project.SLAMinutes())))
	}
	return n
}

// link checks a URL that only a person's browser will follow: evidence may lie
// on our own, private, address.
func (o object) link(name, raw string) {
	o.check(name, raw, func(raw string) error {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("must be an http or https URL without a user name")
		}
		if strings.ContainsFunc(raw, unseen) {
			return errors.New("must have no blanks and no characters that cannot be seen, or have them escaped")
		}
		return nil
	})
}

func (o object) check(name, raw string, rule func(string) error) {
	if raw == "" { // absent, or already noted
		return
	}
	if err := rule(raw); err != nil {
		o.wrong(name, "%s", err)
	}
}

// id reads a reference to something of ours, empty when it is absent. Whether
// it exists is for the command to say.
func (o object) id(name string) string {
	s := o.optional(name, maxID)
	if s != "" && !idPattern.MatchString(s) {
		o.wrong(name, "must be an id")
	}
	return s
}

// requiredID is id for a reference that must be there.
func (o object) requiredID(name string) string {
	s := o.required(name, maxID)
	if strings.TrimSpace(s) != "" && !idPattern.MatchString(s) {
		o.wrong(name, "must be an id")
	}
	return s
}

// eventNames reads a subscription; nil when it is absent.
func (o object) eventNames(name string) *[]string {
	names := o.strings(name, maxEventNames, maxWord)
	if names == nil {
		return nil
	}
	for i, n := range *names {
		if !slices.Contains(subscription.Names(), n) {
			o.wrong(fmt.Sprintf("%s[%d]", name, i), "must be %s", oneOfWords(subscription.Names()))
		}
	}
	return names
}

// patchText reads a field of a PATCH that null and "" clear.
func (o object) patchText(name string, limit int) command.Field[string] {
	if _, there := o.field(name); !there {
		return command.Field[string]{}
	}
	return command.Field[string]{Set: true, Value: o.pointer(name, limit)}
}

// patchSLA reads the SLA of a PATCH, which null clears.
func (o object) patchSLA(name string) command.Field[int] {
	raw, there := o.field(name)
	if !there {
		return command.Field[int]{}
	}
	if isNull(raw) {
		return command.Field[int]{Set: true}
	}
	n := o.slaMinutes(name)
	return command.Field[int]{Set: true, Value: &n}
}

// patchTime reads the moment of a PATCH, which null clears.
func (o object) patchTime(name string) command.Field[time.Time] {
	raw, there := o.field(name)
	if !there {
		return command.Field[time.Time]{}
	}
	if isNull(raw) {
		return command.Field[time.Time]{Set: true}
	}
	text, ok := o.text(name, raw, maxWord)
	at, err := time.Parse(time.RFC3339, text)
	if ok && (err != nil || at.UTC().Year() < 1 || at.UTC().Year() > 9999) {
		o.wrong(name, "must be an RFC 3339 time, such as 2026-11-21T09:00:00Z")
	}
	at = at.UTC().Truncate(time.Millisecond)
	return command.Field[time.Time]{Set: true, Value: &at}
}

// moment reads an ISO 8601 date or time that may be absent or null.
func (o object) moment(name string) *time.Time {
	raw, there := o.given(name)
	if !there {
		return nil
	}
	text, ok := o.text(name, raw, maxWord)
	at := parseTime(text)
	if ok && (at == nil || at.Year() < 1 || at.Year() > 9999) {
		o.wrong(name, "must be an ISO 8601 date or time")
		at = nil
	}
	return at
}

// notNull refuses null for a field of a PATCH that cannot be cleared that way.
func (o object) notNull(name, hint string) {
	if raw, there := o.field(name); there && isNull(raw) {
		o.wrong(name, "must not be null%s", hint)
	}
}

func words[T ~string](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

func numbers(values []int) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strconv.Itoa(v)
	}
	return out
}
