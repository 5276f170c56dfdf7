package input

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/subscription"
	"humanqa/httpapi/wire"
)

// Lengths, in characters (decisions, "Lengths").
const (
	MaxURL                = 2048
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
	maxEventNames         = 50
	maxQuestion           = 2000
	maxAnswer             = 4000
)

// readJobType reads a job type in either spelling, and keeps the spelling.
func readJobType(o wire.Object, name string) (t job.Type, echo string) {
	echo = o.Required(name, wire.MaxWord)
	if strings.TrimSpace(echo) == "" {
		return "", ""
	}
	t, ok := job.ParseType(echo)
	if !ok {
		o.Wrong(name, "must be %s", wire.OneOfWords(wire.Words(job.Types())))
	}
	return t, echo
}

// readSeverity reads a severity or one of its synonyms; absent it is whenAbsent.
func readSeverity(o wire.Object, whenAbsent job.Severity) job.Severity {
	const name = "severity"
	v, ok := o.Given(name)
	if !ok {
		return whenAbsent
	}
	s, ok := o.Text(name, v, wire.MaxWord)
	if !ok || s == "" {
		return whenAbsent
	}
	severity, ok := job.ParseSeverity(s)
	if !ok {
		o.Wrong(name, "must be critical, major or minor")
	}
	return severity
}

// readSLAMinutes reads an SLA; 0 when it is absent or null.
func readSLAMinutes(o wire.Object, name string) int {
	n, ok := o.Integer(name)
	if ok && !slices.Contains(project.SLAMinutes(), n) {
		o.Wrong(name, "must be %s", wire.OneOfWords(wire.List(project.SLAMinutes(), strconv.Itoa)))
	}
	return n
}

// readEventNames reads a subscription; nil when it is absent.
func readEventNames(o wire.Object, name string) *[]string {
	names := o.Strings(name, maxEventNames, wire.MaxWord)
	if names == nil {
		return nil
	}
	for i, n := range *names {
		one, listed := wire.Among(subscription.Names(), n)
		if !listed {
			o.Wrong(fmt.Sprintf("%s[%d]", name, i), "must be %s", wire.OneOfWords(subscription.Names()))
		}
		(*names)[i] = one
	}
	return names
}

// readPatchText reads a field of a PATCH that null and "" clear.
func readPatchText(o wire.Object, name string, limit int) command.Field[string] {
	if _, there := o.Field(name); !there {
		return command.Field[string]{}
	}
	return command.Field[string]{Set: true, Value: o.Pointer(name, limit)}
}

// readPatch reads a field of a PATCH, which null clears.
func readPatch[T any](o wire.Object, name string, read func(wire.Value) T) command.Field[T] {
	v, there := o.Field(name)
	if !there || v.IsNull() {
		return command.Field[T]{Set: there}
	}
	return command.Field[T]{Set: true, Value: new(read(v))}
}

// readPatchInteger reads a whole number of a PATCH.
func readPatchInteger(o wire.Object, name string, low, high int) command.Field[int] {
	return readPatch(o, name, func(wire.Value) int {
		n, ok := o.Integer(name)
		if ok && (n < low || n > high) {
			o.Wrong(name, "must be a whole number from %d to %d", low, high)
		}
		return n
	})
}

// readPatchTime reads a moment of a PATCH.
func readPatchTime(o wire.Object, name string) command.Field[time.Time] {
	return readPatch(o, name, func(v wire.Value) time.Time {
		text, ok := o.Text(name, v, wire.MaxWord)
		at, err := time.Parse(time.RFC3339, text)
		if ok && (err != nil || at.UTC().Year() < 1 || at.UTC().Year() > 9999) {
			o.Wrong(name, "must be an RFC 3339 time, such as 2026-11-21T09:00:00Z")
		}
		return at.UTC().Truncate(time.Millisecond)
	})
}
