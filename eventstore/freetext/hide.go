package freetext

import (
	"bytes"
	"encoding/json"
)

// Hide gives valid JSON with words in the place of the values of some fields, at any depth;
// without words the field goes. All else stays as it is, byte for byte.
func Hide(data []byte, hidden func(field string) (words string, hide bool)) []byte {
	out := make([]byte, 0, len(data))
	kept := 0
	for at := 0; at < len(data); {
		if data[at] != '"' {
			at++
			continue
		}
		end := valueEnd(data, at)
		next := skipBlanks(data, end)
		if next >= len(data) || data[next] != ':' { // a text
			at = end
			continue
		}
		name := nameOf(data[at:end])
		words, hide := hidden(name)
		if !hide {
			at = end
			continue
		}
		out = append(out, data[kept:at]...)
		at = valueEnd(data, skipBlanks(data, next+1))
		switch behind := skipBlanks(data, at); {
		case words != "":
			field, _ := json.Marshal(name) // a string has no error
			out = append(append(append(append(out, field...), ':', '"'), words...), '"')
		case data[behind] == ',':
			at = behind + 1
		default: // it was the last one
			out = bytes.TrimSuffix(bytes.TrimRight(out, " \t\r\n"), []byte(","))
		}
		kept = at
	}
	return append(out, data[kept:]...)
}

// nameOf is the name of a field, which may be written with escapes.
func nameOf(quoted []byte) (name string) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	_ = json.Unmarshal(quoted, &name) // a string of valid JSON
	return name
}

// valueEnd is the place behind the value that begins at a place.
func valueEnd(data []byte, at int) int {
	for depth := 0; at < len(data); at++ {
		switch c := data[at]; {
		case c == '"':
			at = stringEnd(data, at) - 1
			if depth == 0 {
				return at + 1
			}
		case c == '{', c == '[':
			depth++
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			return at
		case c == '}', c == ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return at
}
