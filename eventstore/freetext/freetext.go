// Package freetext takes the free texts out of an event's JSON, and puts them back (decisions,
// "Erasure of one subject").
//
// In the stored JSON each text is a mark. All of them stand in the first field, sealed
// together:
//
//	{"texts":"s1.…","textsSum":"…","title":"\u005bsealed]","price":10,…}
//
// A mark is JSON for "[sealed]" that no encoder of ours writes for a text. So the bytes
// alone say which text belongs where, even if the event's type changes.
//
// The sum is the SHA-256 of the texts behind a random salt, which is sealed with them. An
// account that is given its texts can check them against the signed log. The sum of an
// erased text tells nothing.
package freetext

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"humanqa/domain"
)

// Fields are the fields with texts, at any depth, by their names in JSON
// (domain.SealedFields). A field with a list of strings is a list of texts.
type Fields = map[string]domain.Sealed

const (
	textMark   = `"\u005bsealed]"`
	linkMark   = `"[sealed\u005d"`
	marked     = `\u005` // in each mark
	beforeText = `"`     // of a mark, before that
	beforeLink = `"[sealed`
	textsBegin = `{"texts":"`
	textsEnd   = '"'
	sumBegin   = `","textsSum":"`
	sumEnd     = `",`
	saltBytes  = 16
)

var (
	sumLength  = base64.RawURLEncoding.EncodedLen(sha256.Size)
	saltLength = hex.EncodedLen(saltBytes) + len("\n")
)

// eachText calls each for every text that is not empty, with its place in the JSON.
func eachText(data []byte, fields Fields, each func(from, to int, as domain.Sealed)) {
	for at := 0; at < len(data); {
		if data[at] != '"' {
			at++
			continue
		}
		end := stringEnd(data, at)
		next := skipBlanks(data, end)
		if next >= len(data) || data[next] != ':' {
			at = end
			continue
		}
		as := fields[string(data[at+1:end-1])]
		at = skipBlanks(data, next+1)
		if as == "" || at >= len(data) {
			continue
		}
		list := data[at] == '['
		if list {
			at = skipBlanks(data, at+1)
		}
		for at < len(data) && data[at] == '"' {
			end := stringEnd(data, at)
			if end-at > len(`""`) {
				each(at, end, as)
			}
			if at = skipBlanks(data, end); !list || at >= len(data) || data[at] != ',' {
				break
			}
			at = skipBlanks(data, at+1)
		}
	}
}

// stringEnd is the place behind the JSON string that begins at a quote.
func stringEnd(data []byte, at int) int {
	for at++; at < len(data); at++ {
		switch data[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(data)
}

func skipBlanks(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\n' || data[at] == '\t' || data[at] == '\r') {
		at++
	}
	return at
}

// Taken holds the texts of an event's JSON, and the rest of it.
type Taken struct {
	// Plain is the plaintext to seal: a salt and then each text as JSON, a line each.
	Plain []byte
	rest  []byte // behind the brace
}

// Take takes the texts out of the JSON of an event; found is false where there are none.
func Take(fields Fields, data []byte) (t Taken, found bool) {
	if fields == nil {
		return t, false
	}
	kept := len("{")
	eachText(data, fields, func(from, to int, as domain.Sealed) {
		if t.Plain == nil {
			salt := make([]byte, saltBytes)
			_, _ = rand.Read(salt) // it never fails
			t.Plain = hex.AppendEncode(nil, salt)
		}
		t.Plain = append(append(t.Plain, '\n'), data[from:to]...) // no JSON string holds a line feed
		mark := textMark
		if as == domain.SealedLink {
			mark = linkMark
		}
		t.rest = append(append(t.rest, data[kept:from]...), mark...)
		kept = to
	})
	if t.Plain == nil {
		return t, false
	}
	t.rest = append(t.rest, data[kept:]...)
	return t, true
}

// With gives the JSON that is stored, with the sealed texts.
func (t Taken) With(sealed string) []byte {
	sum := sha256.Sum256(t.Plain)
	out := make([]byte, 0, len(textsBegin)+len(sealed)+len(sumBegin)+sumLength+len(sumEnd)+len(t.rest))
	out = append(append(append(out, textsBegin...), sealed...), sumBegin...)
	out = append(base64.RawURLEncoding.AppendEncode(out, sum[:]), sumEnd...)
	return append(out, t.rest...)
}

// Sealed gives the sealed texts of an event's JSON; nil where none are sealed.
func Sealed(data []byte) []byte {
	sealed, ok := bytes.CutPrefix(data, []byte(textsBegin))
	if !ok {
		return nil
	}
	if end := bytes.IndexByte(sealed, textsEnd); end >= 0 {
		return sealed[:end]
	}
	return nil
}

// Bare is an event's JSON without its sealed texts, with the marks; nil where the sealed
// texts or their sum are malformed.
func Bare(data []byte) []byte {
	if rest := behind(data); rest != nil {
		return append([]byte("{"), rest...)
	}
	return nil
}

// behind is Bare without the brace.
func behind(data []byte) []byte {
	rest := data[min(len(textsBegin)+len(Sealed(data)), len(data)):]
	rest, ok := bytes.CutPrefix(rest, []byte(sumBegin))
	if !ok || len(rest) < sumLength || !bytes.HasPrefix(rest[sumLength:], []byte(sumEnd)) {
		return nil
	}
	return rest[sumLength+len(sumEnd):]
}

// Put gives the JSON with its unsealed texts in their places; ok is false where there are
// not as many texts as marks.
func Put(data, plain []byte) (whole []byte, ok bool) {
	rest := behind(data)
	if rest == nil || len(plain) < saltLength {
		return nil, false
	}
	plain = plain[saltLength:]
	left := true
	enough := true
	whole = replaced(rest, len(plain), func(domain.Sealed) (text []byte) {
		enough = enough && left
		text, plain, left = bytes.Cut(plain, []byte("\n"))
		return text
	})
	return whole, enough && !left
}

// Instead gives the JSON with words in the place of its texts, and empty links.
func Instead(data []byte, words string) (whole []byte, ok bool) {
	rest := behind(data)
	if rest == nil {
		return nil, false
	}
	return replaced(rest, 0, func(as domain.Sealed) []byte { return instead(as, words) }), true
}

func instead(as domain.Sealed, words string) []byte {
	if as == domain.SealedLink {
		return []byte(`""`)
	}
	return []byte(`"` + words + `"`)
}

// replaced puts a text in the place of each mark.
func replaced(rest []byte, more int, text func(domain.Sealed) []byte) []byte {
	out := append(make([]byte, 0, len(rest)+more+1), '{')
	for {
		at := bytes.Index(rest, []byte(marked))
		if at < 0 {
			return append(out, rest...)
		}
		begin, end, as := markAt(rest, at)
		if as == "" { // no mark, but part of a text that was left in the clear
			out, rest = append(out, rest[:at+1]...), rest[at+1:]
			continue
		}
		out = append(append(out, rest[:begin]...), text(as)...)
		rest = rest[end:]
	}
}

// markAt gives the mark around an occurrence of marked, which every mark contains.
func markAt(data []byte, at int) (begin, end int, as domain.Sealed) {
	for _, mark := range []struct {
		text   string
		before int
		as     domain.Sealed
	}{{textMark, len(beforeText), domain.SealedText}, {linkMark, len(beforeLink), domain.SealedLink}} {
		if begin := at - mark.before; begin >= 0 && bytes.HasPrefix(data[begin:], []byte(mark.text)) {
			return begin, begin + len(mark.text), mark.as
		}
	}
	return 0, 0, ""
}

// Erase gives an event's JSON in the clear as it would read with its texts sealed and their
// key destroyed.
func Erase(fields Fields, data []byte) []byte {
	out := make([]byte, 0, len(data))
	kept := 0
	eachText(data, fields, func(from, to int, as domain.Sealed) {
		out = append(append(out, data[kept:from]...), instead(as, domain.ErasedText)...)
		kept = to
	})
	return append(out, data[kept:]...)
}

// Each calls each for every free text of an event's JSON in the clear, in its JSON spelling.
func Each(fields Fields, data []byte, each func(quoted []byte)) {
	eachText(data, fields, func(from, to int, _ domain.Sealed) { each(data[from:to]) })
}
