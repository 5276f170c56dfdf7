package humanqa

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// What the service shows of its own documents, so that a page and the document
// cannot differ.

//go:embed ARCHITECTURE.md
var architecture string

//go:embed docs/event-zero.md
var eventZero string

// Invariant is a row of the table in ARCHITECTURE.md.
type Invariant struct {
	Number int
	Text   string
	HeldBy string // the tests, by their folders
	// Live says that humanqa fsck checks it on live data, too.
	Live bool
}

var (
	invariantRow = regexp.MustCompile(`(?m)^\| (\d+) \| (.+?) \| (.+?) \|$`)
	checkedLive  = regexp.MustCompile("`humanqa fsck` checks ([0-9, toand]+) on live data")
	rangeOfTwo   = regexp.MustCompile(`(\d+)(?: to (\d+))?`)
	eventMeaning = regexp.MustCompile(`(?m)^#### (\S+)\nVersion \d+\. (.+)$`)
)

// Invariants are what must never be untrue, in their order.
var Invariants = sync.OnceValue(func() (all []Invariant) {
	live := map[int]bool{}
	if m := checkedLive.FindStringSubmatch(architecture); m != nil {
		for _, r := range rangeOfTwo.FindAllStringSubmatch(m[1], -1) {
			from, _ := strconv.Atoi(r[1]) // digits
			to := from
			if r[2] != "" {
				to, _ = strconv.Atoi(r[2])
			}
			for n := from; n <= to; n++ {
				live[n] = true
			}
		}
	}
	_, table, _ := strings.Cut(architecture, "## Invariants")
	for _, m := range invariantRow.FindAllStringSubmatch(table, -1) {
		n, _ := strconv.Atoi(m[1])
		all = append(all, Invariant{Number: n, Text: m[2], HeldBy: strings.ReplaceAll(m[3], "`", ""), Live: live[n]})
	}
	return all
})

var meanings = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, m := range eventMeaning.FindAllStringSubmatch(eventZero, -1) {
		all[m[1]] = m[2]
	}
	return all
})

// Meaning says in a sentence or two what an event of the type says; empty where the
// catalogue does not know it.
func Meaning(eventType string) string { return meanings()[eventType] }
