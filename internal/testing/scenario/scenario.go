// Package scenario lets an aggregate's tests read as sentences: given events, when a
// decision is asked for, then these events, this refusal, or nothing.
//
// It also checks that every decision is pure. Asked twice, it must give the same answer
// twice, and a refusal comes without events.
package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
)

// Evolve folds an event into a state.
type Evolve[S any] func(S, domain.Event) S

// Decide is one decision with its command filled in.
type Decide[S any] func(S) ([]domain.Event, error)

// Given is a state with the events that led to it.
type Given[S any] struct {
	t      testing.TB
	evolve Evolve[S]
	state  S
}

// New folds the events that happened before the scenario starts.
func New[S any](t testing.TB, evolve Evolve[S], events ...domain.Event) *Given[S] {
	g := &Given[S]{t: t, evolve: evolve}
	for _, e := range events {
		g.state = evolve(g.state, e)
	}
	return g
}

// State is the state so far.
func (g *Given[S]) State() S { return g.state }

// When asks for the decision.
func (g *Given[S]) When(decide Decide[S]) *Then[S] {
	g.t.Helper()
	events, err := decide(g.state)
	again, errAgain := decide(g.state)
	if !reflect.DeepEqual(events, again) || !reflect.DeepEqual(err, errAgain) {
		g.t.Fatalf("the decision is not pure:\nfirst  %s, %v\nsecond %s, %v", show(events), err, show(again), errAgain)
	}
	if err != nil && len(events) > 0 {
		g.t.Fatalf("a refusal came with events: %v, %s", err, show(events))
	}
	return &Then[S]{given: g, decide: decide, events: events, err: err}
}

// Then is the outcome of a decision.
type Then[S any] struct {
	given  *Given[S]
	decide Decide[S]
	events []domain.Event
	err    error
}

// Events expects exactly these events, and that asking again once they
// happened changes nothing more: every command may be sent twice.
func (t *Then[S]) Events(want ...domain.Event) *Given[S] {
	t.given.t.Helper()
	g := t.Happens(want...)
	again, err := t.decide(g.state)
	if err != nil || len(again) > 0 {
		g.t.Errorf("the repeat is not harmless: %s, %v", show(again), err)
	}
	return g
}

// Happens expects exactly these events, of a decision that must not be taken
// twice. It gives the state after them.
func (t *Then[S]) Happens(want ...domain.Event) *Given[S] {
	g := t.given
	g.t.Helper()
	if t.err != nil {
		g.t.Fatalf("refused: %v", t.err)
	}
	if !reflect.DeepEqual(t.events, want) {
		g.t.Fatalf("decided %s\nwanted  %s", show(t.events), show(want))
	}
	for _, e := range t.events {
		g.state = g.evolve(g.state, e)
	}
	return g
}

// Nothing expects a harmless repeat.
func (t *Then[S]) Nothing() {
	t.given.t.Helper()
	if t.err != nil {
		t.given.t.Fatalf("refused: %v", t.err)
	}
	if len(t.events) > 0 {
		t.given.t.Fatalf("decided %s, wanted nothing", show(t.events))
	}
}

// Conflict expects a refusal by the state, in these words.
func (t *Then[S]) Conflict(message string) *domain.Error {
	t.given.t.Helper()
	return t.refused(domain.KindConflict, domain.CodeConflict, message)
}

// NotFound expects the refusal that the named object does not exist.
func (t *Then[S]) NotFound(what string) {
	t.given.t.Helper()
	t.refused(domain.KindNotFound, domain.CodeNotFound, what+" not found")
}

// Refused expects exactly this refusal.
func (t *Then[S]) Refused(want *domain.Error) {
	t.given.t.Helper()
	if !reflect.DeepEqual(t.err, error(want)) {
		t.given.t.Fatalf("answered %s, %#v\nwanted   %#v", show(t.events), t.err, want)
	}
}

// Invalid expects a refusal of the command itself that names exactly these
// paths.
func (t *Then[S]) Invalid(paths ...string) {
	t.given.t.Helper()
	e := t.refused(domain.KindInvalid, domain.CodeInvalidRequest, "")
	details, _ := e.Extras["details"].([]domain.Detail)
	got := make([]string, len(details))
	for i, d := range details {
		got[i] = d.Path
	}
	if !slices.Equal(got, paths) {
		t.given.t.Fatalf("the refusal names %q, wanted %q", got, paths)
	}
}

// Broken expects an error that the caller has not caused.
func (t *Then[S]) Broken(part string) {
	t.given.t.Helper()
	var e *domain.Error
	if t.err == nil || errors.As(t.err, &e) || !strings.Contains(t.err.Error(), part) {
		t.given.t.Fatalf("answered %s, %v; wanted an internal error with %q", show(t.events), t.err, part)
	}
}

func (t *Then[S]) refused(kind domain.Kind, code domain.Code, message string) *domain.Error {
	t.given.t.Helper()
	var e *domain.Error
	if !errors.As(t.err, &e) {
		t.given.t.Fatalf("answered %s, %v; wanted a refusal: %s", show(t.events), t.err, message)
	}
	if e.Kind != kind || e.Code != code || message != "" && e.Message != message {
		t.given.t.Fatalf("refused with %s %q, wanted %s %q", e.Code, e.Message, code, message)
	}
	return e
}

func show(events []domain.Event) string {
	if len(events) == 0 {
		return "nothing"
	}
	var b strings.Builder
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			data = fmt.Appendf(nil, "%+v", e)
		}
		fmt.Fprintf(&b, "\n  %s %s", e.EventType(), data)
	}
	return b.String()
}
