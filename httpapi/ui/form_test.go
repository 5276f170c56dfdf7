package ui

import (
	"slices"
	"testing"
)

func TestTheSentencesOfAFormHaveAnOrder(t *testing.T) {
	t.Parallel()
	wrong := map[string]string{"note": "is too long", "b": "is missing", "url": "is not one", "a": "is missing", "c": "is missing"}
	want := []string{"The address is not one.", "The note is too long.", "a is missing.", "b is missing.", "c is missing."}
	for range 50 { // a map's order differs from call to call
		if got := Sentences(wrong, "url", "The address", "title", "The title", "note", "The note"); !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
}
