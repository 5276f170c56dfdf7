package fence

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// The words that act on a reader.
var (
	// frameWords follow the bracket of a frame.
	frameWords = regexp.MustCompile(`^\s*(?i:end\s+of\s+data\b|data\s)`)
	// runnerWords begin a command that a runner of CI takes anywhere: ##[add-mask],
	// ##vso[…], ##teamcity[…].
	runnerWords = regexp.MustCompile(`^##\w*\[`)
)

const (
	// runnerLine begins such a command at the beginning of a line: ::add-mask::.
	runnerLine = "::"
	// mention is an at sign that names no person: a report puts a word joiner behind it,
	// which therefore stays.
	mention = "@\u2060"
)

// Plain is a text that acts on no reader. It shows everything that it holds: a control
// character and a turn of the reading direction are U+FFFD, and other letters that show
// nothing are left out. The words of a frame and the commands of runners are broken.
func Plain(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	parts := strings.Split(text, mention)
	for i := range parts {
		parts[i] = strings.Map(visible, parts[i])
	}
	text = strings.Join(parts, mention)
	out := make([]byte, 0, len(text))
	lineBegins := true
	for i, c := range text {
		switch {
		case strings.ContainsRune("[［【〔", c) && frameWords.MatchString(text[i+utf8.RuneLen(c):]):
			c = '('
		case c == '#' && runnerWords.MatchString(text[i:]), c == ':' && lineBegins && strings.HasPrefix(text[i:], runnerLine):
			out = append(out, byte(c))
			c = ' '
		}
		out = utf8.AppendRune(out, c)
		lineBegins = c == '\n' || lineBegins && (c == ' ' || c == '\t')
	}
	return string(out)
}

// visible is the character that stands for another; negative: none.
func visible(c rune) rune {
	switch {
	case c == '\n', c == '\t', !Hidden(c):
		return c
	case unicode.IsSpace(c):
		return ' '
	case unicode.In(c, unicode.Cc, unicode.Bidi_Control):
		return unicode.ReplacementChar
	}
	return -1
}

// Hidden says that a character shows nothing, or turns the reading direction: controls,
// letters of no width, Unicode's tags and variation selectors.
func Hidden(c rune) bool {
	if c < utf8.RuneSelf {
		return unicode.IsControl(c)
	}
	return unicode.In(c, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, c)
}

// JSON writes hidden characters and the commands of runners in encoded JSON as escapes: the
// values stay the same.
func JSON(encoded []byte) []byte {
	return escaped(encoded, func(out []byte, c rune) []byte {
		for _, unit := range utf16.AppendRune(nil, c) {
			out = fmt.Appendf(out, `\u%04x`, unit)
		}
		return out
	})
}

// XML is JSON for a document of XML without CDATA.
func XML(encoded []byte) []byte {
	return escaped(encoded, func(out []byte, c rune) []byte { return fmt.Appendf(out, "&#x%x;", c) })
}

func escaped(encoded []byte, escape func(out []byte, c rune) []byte) []byte {
	out := make([]byte, 0, len(encoded))
	for _, c := range string(encoded) {
		if c >= ' ' && Hidden(c) || c == '#' && bytes.HasSuffix(out, []byte("#")) {
			out = escape(out, c)
		} else {
			out = utf8.AppendRune(out, c)
		}
	}
	return out
}

// Clean makes one line of a text that others wrote: valid UTF-8, single
// blanks, nothing invisible that could reorder or hide what a reader sees, and
// at most limit characters. It stops reading where the line is full.
func Clean(text string, limit int) string { return clean(text, limit, nothing) }

// Written is Clean for people alone: it keeps the hidden characters that writing needs.
func Written(text string, limit int) string { return clean(text, limit, needed) }

// clean leaves out hidden characters, but for as many bytes as needs says: it sees the
// character before them, and the rest of the text.
func clean(text string, limit int, needs func(before rune, rest string) int) string {
	var line []rune
	blank, kept := false, 0  // kept is the end of hidden characters that stay
	for i, r := range text { // an invalid byte becomes U+FFFD
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			blank = len(line) > 0
			continue
		case i < kept:
		case Hidden(r) || unicode.Is(unicode.Co, r):
			before := ' '
			if len(line) > 0 && !blank {
				before = line[len(line)-1]
			}
			if kept = i + needs(before, text[i:]); kept == i {
				continue
			}
		}
		if blank {
			line = append(line, ' ')
			blank = false
		}
		if line = append(line, r); len(line) > limit {
			return strings.TrimRight(string(line[:max(0, limit-1)]), " ") + "…"
		}
	}
	return string(line)
}

func nothing(rune, string) int { return 0 }

// flag is the character before the tags of a flag.
const flag = '\U0001F3F4'

var (
	// joiner is a joiner or non-joiner before a character that shows; flagTags are the tags of a flag.
	joiner   = regexp.MustCompile(`^[\x{200c}\x{200d}][\pL\pM\pS]`)
	flagTags = regexp.MustCompile(`^[\x{e0030}-\x{e0039}\x{e0061}-\x{e007a}]{3,6}\x{e007f}`)
)

// needed is the length of the hidden characters that writing needs: a joiner or non-joiner
// between two characters that show, and the tags of a flag.
func needed(before rune, rest string) int {
	switch {
	case before == flag:
		return len(flagTags.FindString(rest))
	case unicode.In(before, unicode.L, unicode.M, unicode.S) && joiner.MatchString(rest):
		return utf8.RuneLen('\u200d')
	}
	return 0
}
