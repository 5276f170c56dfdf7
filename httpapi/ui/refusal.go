package ui

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

// StatusOf is the status of a refusal: the API's, except for a form that has to be filled
// in again (422).
func StatusOf(kind domain.Kind) int {
	if kind == domain.KindInvalid {
		return http.StatusUnprocessableEntity
	}
	return wire.StatusOf(kind)
}

// Refusal is the view of the page that explains a refused request or an error.
type Refusal struct {
	Status  int
	Heading string
	Message string
	Hint    string
	// Wrong are the errors of a form whose page cannot be shown again.
	Wrong []string
	ID    string
}

// sentencesOf are the errors of a form, by the names of its fields.
func sentencesOf(wrong map[string]string, r *Request) (out []string) {
	for _, path := range slices.Sorted(maps.Keys(wrong)) {
		out = append(out, Sentence(r.fieldNamed(path)+" "+wrong[path]))
	}
	return out
}

// refuse is the only place that turns an error into a page.
func (s *Site) refuse(r *Request, err error) Answer {
	v := Refusal{Message: "Something went wrong on our side.", Hint: "Try again in a moment.", ID: r.ID}
	_, v.Status = wire.Classify(r.Context(), err)
	if known, ok := errors.AsType[*domain.Error](err); ok {
		v.Status, v.Message, v.Hint = StatusOf(known.Kind), Sentence(known.Message), Sentence(known.Hint)
		if wrong := Wrongs(known); len(wrong) > 0 && wrong[""] == "" {
			v.Message, v.Wrong = "The form was not accepted.", sentencesOf(wrong, r)
			v.Hint = "Go back, correct it, and send it again."
		}
	}
	if v.Status >= http.StatusInternalServerError && !errors.Is(r.Context().Err(), context.Canceled) {
		r.Log.WithError(err).Error("page not served")
	}
	for name, value := range wire.HeadersOf(err) {
		r.Writer.Header().Set(name, value)
	}
	v.Heading = http.StatusText(v.Status)
	if v.Status == http.StatusNotFound {
		v.Heading = "Nothing here"
	}
	if r.WantsJSON() {
		return Answer{Status: v.Status, JSON: map[string]string{"error": v.Message, "hint": v.Hint}}
	}
	return Answer{Status: v.Status, Template: "refusal", Title: v.Heading, View: v}
}
