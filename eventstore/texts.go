package eventstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"humanqa/domain"
)

// unstorable are the texts without a text or jsonb value in Postgres. They are
// recognised by the escape that the encoder writes only for them. A U+FFFD of a text
// stands in its JSON as itself.
var unstorable = []struct{ escape, message string }{
	{`\u0000`, "must not contain NUL"},
	{`\ufffd`, "must be valid UTF-8"},
}

// storable refuses an event whose texts no read model could show, as a mistake of the
// request that names the fields' places in the event.
func storable(data []byte) error {
	for _, u := range unstorable {
		if !escaped(data, u.escape) {
			continue
		}
		var details []domain.Detail
		texts("", data, func(path string, text []byte) {
			if escaped(text, u.escape) {
				details = append(details, domain.Detail{Path: path, Message: u.message})
			}
		})
		if len(details) == 0 { // the name of a field
			details = []domain.Detail{{Path: "event", Message: u.message}}
		}
		return domain.Invalid(details...)
	}
	return nil
}

// escaped says that the JSON holds the escape with a backslash that is not escaped itself.
func escaped(data []byte, escape string) bool {
	for {
		at := bytes.Index(data, []byte(escape))
		if at < 0 {
			return false
		}
		first := at
		for first > 0 && data[first-1] == '\\' {
			first--
		}
		if (at-first)%2 == 0 {
			return true
		}
		data = data[at+len(escape):]
	}
}

// texts calls each for every string in a JSON value, in its JSON spelling.
func texts(path string, raw json.RawMessage, each func(path string, text []byte)) {
	switch raw[0] {
	case '"':
		each(path, raw)
	case '[':
		var values []json.RawMessage
		_ = json.Unmarshal(raw, &values) // the encoder wrote it
		for i, value := range values {
			texts(fmt.Sprintf("%s[%d]", path, i), value, each)
		}
	case '{':
		var fields map[string]json.RawMessage
		_ = json.Unmarshal(raw, &fields) // the encoder wrote it
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			at := name
			if path != "" {
				at = path + "." + name
			}
			texts(at, fields[name], each)
		}
	}
}
