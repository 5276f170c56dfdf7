package browsertest

import (
	_ "embed"
	"encoding/json"
	"strings"
)

//go:embed testdata/axe.min.js
var axe string

// everyRule are the rules of WCAG 2.2 AA and axe's good practice.
var everyRule = runOnly{"tag", []string{"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"}}

// screenRules are the rules of these whose result another width or colour scheme can change
// (axe-core, doc/rule-descriptions.md): they measure colours, sizes and overflow, or they
// pass over what the style hides. All others look at elements, attributes and texts, which
// are the same on every screen.
var screenRules = runOnly{"rule", []string{
	"color-contrast", "link-in-text-block",
	"target-size", "scrollable-region-focusable",
	"aria-hidden-focus", "button-name", "empty-heading", "empty-table-header", "heading-order", "label", "label-content-name-mismatch",
	"link-name", "page-has-heading-one", "region", "select-name", "skip-link", "summary-name",
}}

// runOnly is axe's option of that name.
type runOnly struct {
	Type   string   `json:"type"`
	Values []string `json:"values"`
}

// violation is a finding of axe.
type violation struct {
	ID    string   `json:"id"`
	Help  string   `json:"help"`
	Nodes []string `json:"nodes"`
}

// Axe checks the page against WCAG 2.2 AA and axe's good practice. A finding fails the
// test.
func (b *Tab) Axe(what string) {
	b.t.Helper()
	b.axe(what, everyRule)
}

// AxeScreen checks a page that Axe has checked on another screen: only the rules whose
// result can differ.
func (b *Tab) AxeScreen(what string) {
	b.t.Helper()
	b.axe(what, screenRules)
}

func (b *Tab) axe(what string, rules runOnly) {
	b.t.Helper()
	if !Eval[bool](b, "window.axe !== undefined") {
		Eval[bool](b, axe+"; true")
	}
	only, err := json.Marshal(rules)
	if err != nil {
		b.t.Fatal(err)
	}
	found := Eval[[]violation](b, `(async () => {
		const r = await axe.run(document, {resultTypes: ['violations'], runOnly: `+string(only)+`})
		const told = n => n.html.slice(0, 200) + ' | ' + (n.any[0]?.message ?? '')
		return r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 4).map(told)}))
	})()`)
	for _, v := range found {
		b.t.Errorf("%s: axe %s: %s\n\t%s", what, v.ID, v.Help, strings.Join(v.Nodes, "\n\t"))
	}
}
