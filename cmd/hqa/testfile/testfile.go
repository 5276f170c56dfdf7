// Package testfile reads tests that stand in files: Markdown with front matter in YAML and a
// checklist.
//
//	---
//	path: /checkout
//	type: payment_flow
//	paths: [src/checkout/**]
//	---
//	# Checkout
//
//	Buy one thing as a guest.
//
//	- [ ] critical: Pay with a card that is declined -> The cart is still there
//	- [ ] The page opens
package testfile

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Test is one file's test.
type Test struct {
	File  string
	Title string
	// URL is absolute, or Path stands for a place at the base URL that the caller knows.
	URL, Path   string
	Type        string
	Severity    string // of items without one of their own
	Focus       string
	Paths       []string // globs of the files whose change calls for this test; none: every file
	Device      string
	OS, Browser string
	Language    string
	Priority    string
	Project     string
	SLA         int // minutes; 0: the project's
	Description string
	Items       []Item
}

// Item is one point of the checklist.
type Item struct {
	Description, Expected, Severity string
	Line                            int
}

// Problem is a place in a file and what is wrong there.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// The service's limits, in characters.
const (
	maxTitle       = 200
	maxDescription = 5000
	maxItems       = 100
	maxItem        = 1000
	maxTarget      = 100
	maxURL         = 2048
)

var (
	types = []string{
		"first_impression", "general_qa", "payment_flow", "custom", "ai_review", "auth_flow", "form_submission", "mobile_responsive",
		"full_user_story",
	}
	severities = []string{"critical", "major", "minor"}
	priorities = []string{"normal", "urgent"}
	slas       = []string{"15", "30", "60"}
)

// field is one key of the front matter: its rules, its words in the schema, and its place in
// a Test.
type field struct {
	name   string
	about  string
	values []string // none: any text
	most   int      // characters
	number bool
	list   bool
	put    func(*Test, []string)
}

func text(name, about string, most int, into func(*Test) *string, values ...string) field {
	return field{name: name, about: about, most: most, values: values, put: func(t *Test, v []string) { *into(t) = v[0] }}
}

var fields = []field{
	text("title", "The test's name; without it the first heading, or the file's name.", maxTitle, func(t *Test) *string { return &t.Title }),
	text("url", "The URL to test.", maxURL, func(t *Test) *string { return &t.URL }),
	text("path", "A place at the URL that hqa run --url names, such as /checkout.", maxURL, func(t *Test) *string { return &t.Path }),
	text("type", "The type of test; general_qa without it.", maxTarget, func(t *Test) *string { return &t.Type }, types...),
	text("severity", "The severity of items without one; major without it.", maxTarget, func(t *Test) *string { return &t.Severity }, severities...),
	text("focus", "What the test is about, in a sentence.", 2000, func(t *Test) *string { return &t.Focus }),
	{
		name: "paths", about: "Globs of files. With --changed the test runs if a changed file matches; without globs any change counts.",
		most: maxTarget * 10, list: true, put: func(t *Test, v []string) { t.Paths = v },
	},
	text("device", "The device to test on, such as iPhone 15.", maxTarget, func(t *Test) *string { return &t.Device }),
	text("os", "The operating system to test on.", maxTarget, func(t *Test) *string { return &t.OS }),
	text("browser", "The browser to test in.", maxTarget, func(t *Test) *string { return &t.Browser }),
	text("language", "The language to test in, such as German.", maxTarget, func(t *Test) *string { return &t.Language }),
	text("priority", "urgent costs twice as much.", maxTarget, func(t *Test) *string { return &t.Priority }, priorities...),
	text("project", "The id of the project that the test belongs to.", maxTarget, func(t *Test) *string { return &t.Project }),
	{
		name: "sla", about: "Minutes until the test has to be done: 15, 30 or 60.", values: slas, number: true,
		put: func(t *Test, v []string) { t.SLA, _ = strconv.Atoi(v[0]) }, // it is one of the three
	},
}

// elsewhere holds keys that people expect, with the place where each is set.
var elsewhere = map[string]string{
	"pool":       "pools are a setting of the account: an operator keeps its tests to its own checkers",
	"slaMinutes": "write sla",
	"jobType":    "write type",
}

// Parse reads a file. Without problems the test can be submitted.
func Parse(file string, raw []byte) (Test, []Problem) {
	p := &parser{test: Test{File: file}}
	if !utf8.Valid(raw) {
		p.wrong(1, 1, "the file is not UTF-8")
		return p.test, p.problems
	}
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(string(raw), "\ufeff"), "\r\n", "\n"), "\n")
	if i := slices.IndexFunc(lines, unmerged.MatchString); i >= 0 {
		p.wrong(i+1, 1, "git left the marks of a conflict here: settle it")
		return p.test, p.problems
	}
	body := p.frontMatter(lines)
	if body > 0 {
		p.body(lines, body)
	}
	if p.test.Title == "" {
		p.test.Title = strings.TrimSuffix(path.Base(strings.ReplaceAll(file, `\`, "/")), ".md")
	}
	return p.test, p.problems
}

type parser struct {
	test     Test
	problems []Problem
}

func (p *parser) wrong(line, column int, format string, args ...any) {
	p.problems = append(p.problems, Problem{p.test.File, line, column, fmt.Sprintf(format, args...)})
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// frontMatter reads it and gives the index of the first line behind it; 0: there is none.
func (p *parser) frontMatter(lines []string) (body int) {
	if strings.TrimRight(lines[0], " \t") != "---" {
		p.wrong(1, 1, "a test begins with --- and its front matter: hqa init writes one")
		return 0
	}
	end := slices.IndexFunc(lines[1:], func(l string) bool { return strings.TrimRight(l, " \t") == "---" })
	if end < 0 {
		p.wrong(len(lines), 1, "the front matter has no end: add a line with ---")
		return 0
	}
	end++
	var doc yaml.Node
	// The first line stands for the --- above, so that the lines are the file's.
	if err := yaml.Unmarshal([]byte("\n"+strings.Join(lines[1:end], "\n")), &doc); err != nil {
		at := 1
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			at, _ = strconv.Atoi(m[1]) // digits
		}
		p.wrong(at, 1, "the front matter is no YAML: %s", strings.TrimPrefix(yamlLine.ReplaceAllString(err.Error(), ""), "yaml: "))
		return end + 1
	}
	if len(doc.Content) == 0 {
		p.wrong(1, 1, "name a url or a path in the front matter")
		return end + 1
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		p.wrong(root.Line, root.Column, "the front matter must be a list of name: value")
		return end + 1
	}
	p.keys(root)
	return end + 1
}

func (p *parser) keys(root *yaml.Node) {
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		n := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		switch {
		case seen[key.Value] != nil:
			p.wrong(key.Line, key.Column, "%s is there twice", key.Value)
		case n >= 0:
			p.value(fields[n], value)
		case elsewhere[key.Value] != "":
			p.wrong(key.Line, key.Column, "%s: %s", key.Value, elsewhere[key.Value])
		default:
			p.wrong(key.Line, key.Column, "there is no %s: use %s", key.Value, strings.Join(names(), ", "))
		}
		seen[key.Value] = value
	}
	switch at := seen["url"]; {
	case at == nil && seen["path"] == nil:
		p.wrong(1, 1, "name a url or a path in the front matter")
	case at != nil && seen["path"] != nil:
		p.wrong(seen["path"].Line, seen["path"].Column, "name a url or a path, not both")
	case at != nil:
		if u, err := url.Parse(p.test.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			p.wrong(at.Line, at.Column, "url must be like https://example.com/page")
		}
	case !strings.HasPrefix(p.test.Path, "/"):
		p.wrong(seen["path"].Line, seen["path"].Column, "path must begin with /")
	}
	if at := seen["paths"]; at != nil {
		for _, g := range p.test.Paths {
			if _, err := glob(g); err != nil {
				p.wrong(at.Line, at.Column, "%s: %s", g, err)
			}
		}
	}
}

func names() (all []string) {
	for _, f := range fields {
		all = append(all, f.name)
	}
	return all
}

// value checks a value and puts it into the test.
func (p *parser) value(f field, v *yaml.Node) {
	list := []*yaml.Node{v}
	if f.list && v.Kind == yaml.SequenceNode {
		list = v.Content
	}
	var texts []string
	for _, n := range list {
		switch {
		case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
			p.wrong(n.Line, n.Column, "%s must be a text", f.name)
			return
		case f.values != nil && !slices.Contains(f.values, n.Value):
			p.wrong(n.Line, n.Column, "%s must be one of %s", f.name, strings.Join(f.values, ", "))
			return
		case f.most > 0 && utf8.RuneCountInString(n.Value) > f.most:
			p.wrong(n.Line, n.Column, "%s is longer than %d characters", f.name, f.most)
			return
		case strings.TrimSpace(n.Value) == "":
			p.wrong(n.Line, n.Column, "%s is empty: give it a value, or leave it out", f.name)
			return
		}
		texts = append(texts, strings.TrimSpace(n.Value))
	}
	if len(texts) > 0 {
		f.put(&p.test, texts)
	}
}

// Text is the text for the checker: the focus, the language and the file's own text.
func (t Test) Text() string {
	var parts []string
	for _, s := range []string{t.Focus, t.Description} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		parts = append(parts, t.Title)
	}
	if t.Language != "" {
		parts = append(parts, "Test in this language: "+t.Language+".")
	}
	return strings.Join(parts, "\n\n")
}

// Target is the URL to test. base stands in front of a path.
func (t Test) Target(base string) (string, error) {
	if t.URL != "" {
		return t.URL, nil
	}
	if base == "" {
		return "", errors.New(t.File + " has a path: name the URL in front of it with --url, or in HQA_TARGET_URL")
	}
	return strings.TrimRight(base, "/") + t.Path, nil
}

// Touched says whether one of the changed files calls for the test. Its own file always
// does.
func (t Test) Touched(changed []string) bool {
	if len(t.Paths) == 0 {
		return len(changed) > 0
	}
	own := strings.TrimPrefix(strings.ReplaceAll(t.File, `\`, "/"), "./")
	for _, g := range t.Paths {
		matches, err := glob(g)
		if err == nil && slices.ContainsFunc(changed, matches.MatchString) {
			return true
		}
	}
	return slices.Contains(changed, own)
}

// glob compiles a pattern: * and ? stay within a folder, ** crosses folders, and a pattern
// that ends in / is all that the folder holds.
func glob(pattern string) (*regexp.Regexp, error) {
	if strings.HasPrefix(pattern, "!") || strings.HasPrefix(pattern, "/") || strings.Contains(pattern, `\`) {
		return nil, errors.New("a glob is relative to the repository's root, without ! and with / between folders")
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	var b strings.Builder
	b.WriteString("^")
	for rest := strings.TrimPrefix(pattern, "./"); rest != ""; {
		switch {
		case strings.HasPrefix(rest, "**/"):
			b.WriteString("(?:.*/)?")
			rest = rest[3:]
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			rest = rest[2:]
		case rest[0] == '*':
			b.WriteString("[^/]*")
			rest = rest[1:]
		case rest[0] == '?':
			b.WriteString("[^/]")
			rest = rest[1:]
		default:
			_, size := utf8.DecodeRuneInString(rest)
			b.WriteString(regexp.QuoteMeta(rest[:size]))
			rest = rest[size:]
		}
	}
	return regexp.Compile(b.String() + "$")
}

// Write is the file of a test, as Parse reads it. Texts that others wrote stay on the line
// that they belong to.
func Write(t Test) ([]byte, error) {
	var front yaml.Node
	front.Kind = yaml.MappingNode
	for _, pair := range [][2]string{{"url", t.URL}, {"path", t.Path}, {"type", t.Type}, {"priority", t.Priority}, {"project", t.Project}} {
		if pair[1] != "" && pair[1] != "normal" {
			front.Content = append(front.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: pair[0]},
				&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: pair[1]})
		}
	}
	var b bytes.Buffer
	b.WriteString("---\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&front), e.Close()); err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "---\n# %s\n\n", line(t.Title))
	for paragraph := range strings.Lines(t.Description) {
		if paragraph = leading.ReplaceAllString(line(paragraph), ""); paragraph != "" {
			fmt.Fprintf(&b, "%s\n", paragraph)
		}
	}
	b.WriteString("\n")
	for _, i := range t.Items {
		fmt.Fprintf(&b, "- [ ] %s: %s", i.Severity, result.ReplaceAllString(line(i.Description), " to "))
		if i.Expected != "" {
			fmt.Fprintf(&b, " -> %s", line(i.Expected))
		}
		b.WriteString("\n")
	}
	return b.Bytes(), nil
}

// line is a text on one line, without control characters.
func line(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// Schema is the JSON Schema of the front matter, for editors.
func Schema() map[string]any {
	properties := map[string]any{}
	for _, f := range fields {
		one := map[string]any{"description": f.about}
		text := map[string]any{"type": "string", "minLength": 1}
		if f.most > 0 {
			text["maxLength"] = f.most
		}
		switch {
		case f.number:
			numbers := []int{}
			for _, v := range f.values {
				n, _ := strconv.Atoi(v) // a constant of ours
				numbers = append(numbers, n)
			}
			one["enum"] = numbers
		case f.list:
			one["oneOf"] = []any{text, map[string]any{"type": "array", "items": text, "minItems": 1}}
		case f.values != nil:
			one["enum"] = f.values
		default:
			one["type"], one["minLength"], one["maxLength"] = "string", 1, f.most
		}
		properties[f.name] = one
	}
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A test of hqa (front matter)", "type": "object",
		"properties": properties, "additionalProperties": false,
		"oneOf": []any{map[string]any{"required": []string{"url"}}, map[string]any{"required": []string{"path"}}},
	}
}
