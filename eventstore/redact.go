package eventstore

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"humanqa/domain"
	"humanqa/eventstore/freetext"
)

// secret names the fields, at any depth, that hold a sealed secret, or a hash
// that helps to find one.
var secret = map[string]bool{
	"credentials":        true,
	"accessInstructions": true,
	"sealed":             true,
	"fingerprint":        true,
	"hash":               true,
	"hookHash":           true,
	"part":               true, // of an event that may hold one
	"texts":              true,
}

// IsSecret says whether a field holds a secret, by its name in JSON or in Go.
func IsSecret(field string) bool {
	for name := range secret {
		if strings.EqualFold(name, field) {
			return true
		}
	}
	return false
}

// Redact gives an event's JSON for human eyes: in the same order, secrets
// replaced. It shows nothing of an event of an unknown type, which may hold secrets.
func Redact(eventType string, data []byte) []byte {
	return RedactBy(eventType, data, domain.HiddenText, nil)
}

// WithoutSealed gives an event's JSON without the fields that the log holds sealed, at any
// depth, and without secrets and hashes.
func WithoutSealed(e domain.Event) ([]byte, error) {
	data, err := domain.EncodeJSON(e)
	if err != nil {
		return nil, err
	}
	name := e.EventType()
	sealed, own := registry[name].Sealed, personal[name]
	return freetext.Hide(data, func(field string) (words string, hide bool) {
		return "", secret[field] || sealed[field] != "" || slices.Contains(own, field)
	}), nil
}

// RedactBy is Redact with other words in the place of secrets. further gives the words for
// further fields, by their names.
func RedactBy(eventType string, data []byte, words string, further map[string]string) []byte {
	if _, known := registry[eventType]; !known || !json.Valid(data) {
		return []byte(`"` + words + `"`)
	}
	return bytes.TrimSpace(freetext.Hide(data, func(field string) (string, bool) {
		if secret[field] {
			return words, true
		}
		said, hide := further[field]
		return said, hide
	}))
}
