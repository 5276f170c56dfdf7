package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf16"
	"unicode/utf8"
)

// This file splits valid JSON (json.Valid) without a copy. It saves memory, but no time
// that a client feels. To split a body of 50 MB costs 2 kB more; json.Unmarshal takes 150
// MB, and a json.Decoder 390 MB. The split of an object with millions of keys ends at
// MaxKeys.

// maxKeyBytes bounds the keys that are looked at. No key of ours is longer.
const maxKeyBytes = 1024

// members calls each with the members of a valid object, in their order, until each says
// no.
func members(raw json.RawMessage, each func(name string, value json.RawMessage) bool) {
	for i := space(raw, 1); raw[i] != '}'; {
		end := skipString(raw, i)
		name := keyOf(raw[i:end])
		i = space(raw, space(raw, end)+1) // behind the colon
		end = skipValue(raw, i)
		if !each(name, raw[i:end:end]) {
			return
		}
		i = comma(raw, end)
	}
}

// elements calls each with the elements of a valid array.
func elements(raw json.RawMessage, each func(value json.RawMessage) bool) {
	for i := space(raw, 1); raw[i] != ']'; {
		end := skipValue(raw, i)
		if !each(raw[i:end:end]) {
			return
		}
		i = comma(raw, end)
	}
}

// keyOf gives a key. Of a key that is longer than any of ours it gives only the
// beginning.
func keyOf(raw json.RawMessage) string {
	if len(raw) > maxKeyBytes {
		return string(raw[1:maxKeyBytes])
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	var name string
	_ = json.Unmarshal(raw, &name) // it is valid
	return name
}

// comma is the place of the next member or element, or of the end.
func comma(raw json.RawMessage, i int) int {
	if i = space(raw, i); raw[i] == ',' {
		i = space(raw, i+1)
	}
	return i
}

func space(raw json.RawMessage, i int) int {
	for raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r' {
		i++
	}
	return i
}

// skipString is the place behind the string that begins at i.
func skipString(raw json.RawMessage, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// skipValue is the place behind the value that begins at i.
func skipValue(raw json.RawMessage, i int) int {
	for depth := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i = skipString(raw, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default: // a separator, or a number, true, false or null
			if depth > 0 {
				i++
				continue
			}
			for i < len(raw) && !ends(raw[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// ends says that a number, true, false or null goes no further.
func ends(c byte) bool {
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\n' || c == '\r'
}

// characters counts the characters of a valid string without unescaping it.
func characters(raw json.RawMessage) (n int) {
	for i := 1; i < len(raw)-1; n++ {
		switch {
		case raw[i] != '\\' && raw[i] < utf8.RuneSelf:
			i++
		case raw[i] != '\\':
			_, size := utf8.DecodeRune(raw[i:])
			i += size
		case raw[i+1] != 'u':
			i += 2
		case utf16.DecodeRune(unit(raw, i), unit(raw, i+6)) != utf8.RuneError: // a pair is one character
			i += 12
		default:
			i += 6
		}
	}
	return n
}

// unit is the UTF-16 unit of the escape that stands at i; -1 if none does.
func unit(raw json.RawMessage, i int) (u rune) {
	if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
		return -1
	}
	for _, c := range raw[i+2 : i+6] {
		u <<= 4
		switch {
		case digit(c):
			u |= rune(c - '0')
		default:
			u |= rune(c|0x20) - 'a' + 10
		}
	}
	return u
}
