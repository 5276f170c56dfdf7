package eventstore

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"strings"

	"humanqa/domain"
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
func IsSecret(field string) bool { return secretFields[strings.ToLower(field)] }

var secretFields = func() map[string]bool {
	lower := make(map[string]bool, len(secret))
	for name := range secret {
		lower[strings.ToLower(name)] = true
	}
	return lower
}()

// Redact gives an event's JSON for human eyes: in the same order, secrets
// replaced. It shows nothing of an event of an unknown type, which may hold secrets.
func Redact(eventType string, data []byte) []byte {
	return RedactBy(eventType, data, domain.HiddenText, nil)
}

// RedactBy is Redact with other words in the place of secrets. further gives the words for
// further fields, by their names.
func RedactBy(eventType string, data []byte, words string, further map[string]string) []byte {
	if _, known := registry[eventType]; known {
		if !mayHide(data, further) {
			return bytes.TrimSpace(data)
		}
		out, err := redact(data, func(field string) (string, bool) {
			if secret[field] {
				return words, true
			}
			said, hide := further[field]
			return said, hide
		})
		if err == nil {
			return out
		}
	}
	return []byte(`"` + words + `"`)
}

// mayHide says whether the event may have a field that is to be replaced. Nearly every
// event has none, and parsing costs a hundred times as much as this check. A name may be
// written with escapes.
func mayHide(data []byte, further map[string]string) bool {
	if bytes.Contains(data, []byte(`\u`)) || !json.Valid(data) {
		return true
	}
	for _, names := range []iter.Seq[string]{maps.Keys(secret), maps.Keys(further)} {
		for name := range names {
			if bytes.Contains(data, []byte(`"`+name+`"`)) {
				return true
			}
		}
	}
	return false
}

// redact rewrites one JSON value.
func redact(data []byte, instead func(field string) (words string, hide bool)) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}
	delim, composite := open.(json.Delim)
	if !composite {
		return bytes.TrimSpace(data), nil
	}
	var out bytes.Buffer
	out.WriteString(delim.String())
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		words, hide := "", false
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string) // a decoder gives nothing else for a key
			words, hide = instead(name)
			quoted, err := marshal(name)
			if err != nil {
				return nil, err
			}
			out.Write(quoted)
			out.WriteByte(':')
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if hide {
			value = json.RawMessage(`"` + words + `"`)
		} else if value, err = redact(value, instead); err != nil {
			return nil, err
		}
		out.Write(value)
	}
	end, err := dec.Token()
	if err != nil {
		return nil, err
	}
	closing, _ := end.(json.Delim) // More was false, so it is one
	out.WriteString(closing.String())
	return out.Bytes(), nil
}
