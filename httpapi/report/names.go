package report

import (
	"fmt"
	"strings"
	"unicode"
)

// names gives texts that no reader of a document takes for one another: readers of JUnit know
// a case by its class and name only, and show the last of equal ones for all of them.
type names map[string]int

// same is the form in which texts are compared: XML and its readers change blanks and what
// they cannot write.
func same(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' && !unicode.IsSpace(c) || c == '\uFFFE' || c == '\uFFFF' {
			return unicode.ReplacementChar
		}
		return c
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// unique gives the text, with a number behind it if it was given before.
func (n names) unique(text string) string {
	for given := text; ; given = fmt.Sprintf("%s (%d)", text, n[same(text)]) {
		if _, taken := n[same(given)]; !taken {
			n[same(given)] = 1
			return given
		}
		n[same(text)]++
	}
}

// classes are the jobs' titles. Where several are equal, what each was tested on stands
// behind its title, and where that is equal, too, the beginning of its id.
func classes(ended []Job) []string {
	out := make([]string, len(ended))
	for i, t := range ended {
		out[i] = t.Title
	}
	for _, more := range []func(Job) string{Job.target, func(t Job) string { return t.ID[:min(8, len(t.ID))] }} {
		times := map[string]int{}
		for _, class := range out {
			times[same(class)]++
		}
		for i, t := range ended {
			if told := more(t); told != "" && times[same(out[i])] > 1 {
				out[i] += " (" + told + ")"
			}
		}
	}
	given := names{}
	for i := range out {
		out[i] = given.unique(out[i])
	}
	return out
}

// target is what the test was asked to run on, in words; empty: anything.
func (t Job) target() string {
	var words []string
	for _, w := range []string{t.Target.Device, t.Target.OS, t.Target.Browser, t.Target.ScreenSize, t.Target.Network} {
		if w != "" {
			words = append(words, w)
		}
	}
	return strings.Join(words, ", ")
}
