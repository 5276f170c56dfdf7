package ui

import (
	"errors"
	"net/http"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

// StatusOf is the status of a refusal: the API's, but for a form that has to be
// filled in again.
func StatusOf(kind domain.Kind) int {
	if kind == domain.KindInvalid {
		return http.StatusUnprocessableEntity
	}
	return wire.StatusOf(kind)
}

// Refusal is the view of the page that says why something was not done.
type Refusal struct {
	Status  int
	Heading string
	Message string
	Hint    string
	ID      string
}

// refuse is the only place that turns an error into a page.
func (s *Site) refuse(r *Request, err error) Answer {
	v := Refusal{Status: http.StatusInternalServerError, Message: "Something went wrong on our side.", Hint: "Try again in a moment.",
		ID: r.ID}
	var known *domain.Error
	switch {
	case errors.As(err, &known):
		v.Status, v.Message, v.Hint = StatusOf(known.Kind), Sentence(known.Message), Sentence(known.Hint)
	case r.Context().Err() != nil:
		v.Status = http.StatusServiceUnavailable
	}
	if v.Status >= http.StatusInternalServerError {
		r.Log.WithError(err).Error("page not served")
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
