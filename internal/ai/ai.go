// Package ai is the port to whatever writes checklists. Rules needs no model
// and no network: the same brief always gives the same list, and it is what
// every other writer falls back to.
package ai

import (
	"context"
	"strings"
	"unicode"
)

// Brief is what a checklist is written from. It never carries credentials or
// access instructions.
type Brief struct {
	JobType         string // snake_case
	URL             string
	Title           string
	Description     string
	Feature         string
	EarlierFailures []string // descriptions of the project's open failures
}

// Item is one thing to check.
type Item struct {
	Description     string
	ExpectedOutcome string
	Severity        string // critical, major or minor
}

// Rules writes a checklist from the job's type and from the words of its URL,
// title, description and feature.
type Rules struct{}

// GeneratedBy names the writer, as answers show it.
func (Rules) GeneratedBy() string { return "rules" }

// A list outside these bounds is either no test or more than one. A list of
// nothing but old failures would find nothing new.
const (
	minItems       = 5
	maxItems       = 12
	maxRegressions = 8
)

// Checklist gives 5 to 12 items: earlier failures first, then what the job's
// type is about, then the topics the brief speaks of, then what holds for
// every app. It never fails.
func (Rules) Checklist(_ context.Context, b Brief) ([]Item, error) {
	list := &checklist{seen: make(map[string]bool)}
	for _, failure := range b.EarlierFailures {
		list.add(maxRegressions, regression(failure))
	}
	list.add(maxItems, featureItem(b)...)
	list.add(maxItems, byType[b.JobType]...)
	about := wordsOf(b)
	for _, t := range topics {
		if t.matches(about) {
			list.add(maxItems, t.items...)
		}
	}
	list.add(max(minItems, len(list.items)+2), basics...)
	return list.items, nil
}

// checklist collects items, each description once.
type checklist struct {
	items []Item
	seen  map[string]bool
}

func (l *checklist) add(limit int, items ...Item) {
	for _, item := range items {
		key := strings.ToLower(item.Description)
		if item.Description == "" || l.seen[key] || len(l.items) >= min(limit, maxItems) {
			continue
		}
		l.seen[key] = true
		l.items = append(l.items, item)
	}
}

// regression asks for what failed before, in its own words.
func regression(failure string) Item {
	failure = strings.TrimSpace(failure)
	if failure == "" {
		return Item{}
	}
	return Item{
		Description:     shorten(failure),
		ExpectedOutcome: "What failed in an earlier test now works.",
		Severity:        "critical",
	}
}

func featureItem(b Brief) []Item {
	feature := strings.TrimSpace(b.Feature)
	if feature == "" {
		return nil
	}
	return []Item{{
		Description:     shorten("Use this feature from start to end, as a customer would: " + feature),
		ExpectedOutcome: "It does what its name promises, and every step says what happened.",
		Severity:        "critical",
	}}
}

// maxText keeps an item within the length that a client's own items have.
const maxText = 1000

func shorten(s string) string {
	r := []rune(s)
	if len(r) <= maxText {
		return s
	}
	return strings.TrimSpace(string(r[:maxText-1])) + "…"
}

// wordsOf gives the lower-case words of everything the brief says, in order.
func wordsOf(b Brief) []string {
	all := strings.Join([]string{b.URL, b.Title, b.Description, b.Feature}, " ")
	return strings.FieldsFunc(strings.ToLower(all), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}
