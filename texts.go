package humanqa

import (
	_ "embed"
	"regexp"
	"sync"
)

// The service shows the meaning of an event on its pages. The text comes from
// the catalogue, so that a page and the document cannot differ.

//go:embed docs/event-zero.md
var eventZero string

var eventMeaning = regexp.MustCompile(`(?m)^#### (\S+)\nVersion \d+\. (.+)$`)

var meanings = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, m := range eventMeaning.FindAllStringSubmatch(eventZero, -1) {
		all[m[1]] = m[2]
	}
	return all
})

// Meaning tells in a sentence or two what an event of the type means. It is empty
// for a type that the catalogue does not know.
func Meaning(eventType string) string { return meanings()[eventType] }
