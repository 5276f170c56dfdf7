package ai

import (
	"context"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/fence"
)

// byRules names the rules as the writer in reports and checklists.
const byRules = "rules"

// Rules needs no model, and no network but for the page of a review: the same brief
// always gives the same answer. Every other writer falls back to it, and it never fails.
type Rules struct {
	pages fetcher
}

// Instant implements command.AI.
func (*Rules) Instant() bool { return true }

// A list outside these bounds is either no test or more than one.
const (
	minItems = 5
	maxItems = 12
)

// Checklist gives 5 to 12 items, in this order: for the feature, for the job's type, for
// the topics of the brief, for those of the earlier failures, for every app. A review
// gets the review's own checks. The items that open the list are not among them.
func (*Rules) Checklist(_ context.Context, b command.ChecklistBrief) ([]command.NewItem, string, error) {
	return checklistByRules(b), byRules, nil
}

func checklistByRules(b command.ChecklistBrief) []command.NewItem {
	list := newChecklist(b.Opening)
	if b.Type.Automatic() {
		return reviewList(list)
	}
	if feature := fence.Clean(b.Feature, maxItemText/2); feature != "" {
		list.addItems(maxItems, item{
			"Use this feature from start to end, as a customer would: " + feature,
			"It does what its name promises, and every step says what happened.",
			job.Critical,
		})
	}
	list.addItems(maxItems, catalogue.Types[b.Type]...)
	about, failed := wordsOf(b.URL, b.Title, b.Description, b.Feature), wordsOfFailures(b.Failures)
	for _, t := range catalogue.Topics {
		if t.matches(about) {
			list.addItems(maxItems, t.Items...)
		}
	}
	for _, t := range catalogue.Topics {
		if t.matches(failed) {
			list.addItems(maxItems, t.Items...)
		}
	}
	list.addItems(max(minItems, len(list.items)+2), catalogue.Basics...)
	return list.items
}

// reviewList lists the checks of Review under their keys: no person looks at the list.
func reviewList(list *checklist) []command.NewItem {
	for _, c := range catalogue.Review {
		list.put(c.Key, c.item)
	}
	list.addItems(1, catalogue.Basics...) // all of them failed before: a list is never empty
	return list.items
}

func wordsOfFailures(failures []command.Regression) []string {
	var texts []string
	for _, f := range failures {
		texts = append(texts, f.Description)
	}
	return wordsOf(texts...)
}

// checklist collects items, each key once.
type checklist struct {
	items []command.NewItem
	taken map[string]bool
}

// newChecklist leaves the keys of the items that open the list to them.
func newChecklist(opening []job.Item) *checklist {
	l := &checklist{taken: make(map[string]bool)}
	for _, f := range opening {
		l.taken[f.Key] = true
		l.taken[job.KeyFor(f.Description)], l.taken[job.ReadableKey(f.Description)] = true, true
	}
	return l
}

func (l *checklist) addItems(limit int, items ...item) {
	for _, i := range items {
		if len(l.items) < min(limit, maxItems) {
			l.put(job.ReadableKey(i.Description), i)
		}
	}
}

// addWritten adds an item of a model's words, whose key is derived later.
func (l *checklist) addWritten(i item) {
	derived, readable := job.KeyFor(i.Description), job.ReadableKey(i.Description)
	if len(l.items) == maxItems || l.taken[readable] || l.taken[derived] {
		return
	}
	l.put(derived, i)
	l.taken[readable] = true
	l.items[len(l.items)-1].Key = ""
}

// put adds an item whose key is free.
func (l *checklist) put(key string, i item) {
	if l.taken[key] {
		return
	}
	l.taken[key] = true
	l.items = append(l.items, command.NewItem{
		Key: key, Description: i.Description, ExpectedOutcome: i.Expected, Severity: i.Severity,
	})
}
