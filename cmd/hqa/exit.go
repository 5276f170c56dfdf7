package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/fence"
)

// The exit codes. docs/hqa.md publishes them; a test compares the two.
const (
	exitPassed   = 0
	exitFailures = 1
	exitUsage    = 2
	exitRefused  = 3
	exitUntested = 4
	exitRunning  = 5
	exitOutage   = 6
)

// exits says what each code means, as docs/hqa.md has it.
var exits = [...]string{
	exitPassed:   "Every test passed. A command without a verdict did its work.",
	exitFailures: "A test found failures at or above `--fail-on`.",
	exitUsage:    "Wrong use: the command line, a file, a field or an id is wrong. Nothing was submitted.",
	exitRefused:  "Refused: the key, the credits or a limit.",
	exitUntested: "Untestable, cancelled, or not tested in time. Failed tests are refunded.",
	exitRunning:  "Accepted and still running when the wait ran out. Run the same command again; nothing is charged.",
	exitOutage:   "The service or this machine failed. Run the same command again.",
}

// failure is an error with an exit code of its own.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func usage(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

func refused(format string, args ...any) error {
	return &failure{exitRefused, fmt.Errorf(format, args...)}
}

// verdict is an outcome that was told already.
type verdict int

func (v verdict) Error() string { return exits[v] }

// exitOf is the code of an error.
func exitOf(err error) int {
	var told verdict
	var own *failure
	var answer *humanqa.Error
	switch {
	case err == nil:
		return exitPassed
	case errors.As(err, &told):
		return int(told)
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &answer):
		switch {
		case answer.Status == http.StatusBadRequest, answer.Status == http.StatusNotFound,
			answer.Status == http.StatusMethodNotAllowed, answer.Status == http.StatusRequestEntityTooLarge:
			return exitUsage
		case answer.Status >= http.StatusBadRequest && answer.Status < http.StatusInternalServerError:
			return exitRefused
		}
	}
	return exitOutage
}

// fail tells an error, with the next step where one is known, and gives its code.
func (a *app) fail(err error) int {
	code := exitOf(err)
	if _, told := errors.AsType[verdict](err); told {
		return code
	}
	line := oneLine(err.Error())
	if !a.json {
		a.say("hqa: %s", line)
		return code
	}
	object := map[string]any{"error": line, "exitCode": code}
	if answer, ok := errors.AsType[*humanqa.Error](err); ok {
		maps.Copy(object, answer.Extras)
		object["error"], object["status"] = answer.Message, answer.Status
	}
	raw, _ := json.Marshal(object) // texts, numbers, and what came as JSON
	a.say("%s", fence.JSON(raw))
	return code
}

// oneLine joins the lines of a text that others wrote, and leaves nothing that acts on a terminal
// or a runner.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(c rune) bool { return c == '\n' || c == '\r' }), "; ")
	return fence.Plain(s)
}
