package testfile_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"humanqa/cmd/hqa/testfile"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
)

const checkout = `---
path: /checkout
type: payment_flow
severity: minor
focus: Paying
paths:
  - src/checkout/**
  - "*.css"
device: iPhone 15
language: German
sla: 30
---
# Checkout

Buy one thing as a guest.

- [ ] critical: Pay with a declined card -> The cart is still there
- [x] The page opens
`

func TestATestIsReadFromItsFile(t *testing.T) {
	t.Parallel()
	got, problems := testfile.Parse("qa/checkout.md", []byte(checkout))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	want := testfile.Test{
		File: "qa/checkout.md", Title: "Checkout", Path: "/checkout", Type: "payment_flow", Severity: "minor", Focus: "Paying",
		Paths: []string{"src/checkout/**", "*.css"}, Device: "iPhone 15", Language: "German", SLA: 30,
		Description: "Buy one thing as a guest.",
		Items: []testfile.Item{
			{Description: "Pay with a declined card", Expected: "The cart is still there", Severity: "critical", Line: 17},
			{Description: "The page opens", Severity: "minor", Line: 18},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if text := got.Text(); text != "Paying\n\nBuy one thing as a guest.\n\nTest in this language: German." {
		t.Errorf("a checker is told %q", text)
	}
}

func TestAProblemHasItsLineAndColumn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"# Checkout\n":                    "f.md:1:1: a test begins with ---",
		"---\nurl: https://example.com\n": "f.md:3:1: the front matter has no end",
		"---\n---\n":                      "f.md:1:1: name a url or a path",
		"---\nurl: example\n---\n":        "f.md:2:6: url must be like",
		"---\nurl: https://example.com\ntype: fast\n---\n":     "f.md:3:7: type must be one of first_impression",
		"---\nurl: https://example.com\n  typ: x\n---\n":       "f.md:3:1: the front matter is no YAML",
		"---\nurl: https://example.com\nsla: 5\n---\n":         "f.md:3:6: sla must be one of 15, 30, 60",
		"---\nurl: https://example.com\nspeed: 5\n---\n":       "f.md:3:1: there is no speed",
		"---\nurl: https://example.com\npool: own\n---\n":      "f.md:3:1: pool: pools are a setting of the account",
		"---\nurl: https://example.com\npath: /x\n---\n":       "f.md:3:7: name a url or a path, not both",
		"---\npath: x\n---\n":                                  "f.md:2:7: path must begin with /",
		"---\nurl: https://example.com\ndevice: {}\n---\n":     "f.md:3:9: device must be a text",
		"---\nurl: https://example.com\nurl: https://b.c\n---": "f.md:3:1: url is there twice",
		"---\nurl: https://example.com\npaths: ['!x']\n---\n":  "f.md:3:8: !x: a glob is relative",
		"---\nurl: https://example.com\n---\n- [ ] \n":         "f.md:4:7: the item is empty",
		"---\n- a\n---\n": "f.md:2:1: the front matter must be a list of name: value",
		"---\nurl: https://example.com\n---\n- [ ] " + strings.Repeat("x", 1001): "f.md:4:7: the item is longer",
	} {
		_, problems := testfile.Parse("f.md", []byte(text))
		if len(problems) == 0 || !strings.HasPrefix(problems[0].String(), want) {
			t.Errorf("%q: %v, want %s", text, problems, want)
		}
	}
}

// front is the front matter of a test, whose body begins in line 4.
const front = "---\nurl: https://example.com\n---\n"

func TestWhatGitHubRendersAsATaskIsAnItem(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"- [ ] a\n* [x] b\n+ [X] c":                           "a|b|c",
		"1. [ ] a\n2) [ ] b\n\n10. [x] c":                     "a|b|c",
		"-\t[ ] a\n   - [ ]   b  ":                            "a|b",
		"- a\n  - [ ] b\n    - [ ] c\n\n      - [ ] d":        "b|c|d",
		"> - [ ] a\n> - [ ] b":                                "a|b",
		"Text\n- [ ] a\nText\n1. [ ] b":                       "a Text|b",
		"- [ ] critical: a long\n  line -> an end\n\nText":    "a long line",
		"- [ ] a\n```\n- [ ] code\n~~~\n```\n- [ ] b":         "a|b",
		"~~~~ sh\n- [ ] code\n~~~\n-[ ] code\n~~~~\n- [ ] a":  "a",
		"<!--\n- [ ] gone\n-->\n- [ ] a\n<!-- - [ ] gone -->": "a",
		"`- [ ]` is an item, and so is [x](https://example.com).\n\n- [x](https://example.com)\n- [ ] a\n\n---": "a",
		"| [ ] | x |\n\n- [ ] a": "a",
	} {
		got, problems := testfile.Parse("f.md", []byte(front+body))
		var items []string
		for _, i := range got.Items {
			items = append(items, i.Description)
		}
		if len(problems) > 0 || strings.Join(items, "|") != want {
			t.Errorf("%q has the items %q, want %q: %v", body, items, want, problems)
		}
	}
}

func TestALineThatBeginsLikeAnItemAndIsNoneIsAMistake(t *testing.T) {
	t.Parallel()
	for line, column := range map[string]int{
		"-\u00a0[ ] a": 3, "-[ ] a": 2, "- [ ]a": 3, "- [] a": 3, "- [  ] a": 3, "- [x ] a": 3, "- [ ]\u00a0a": 3, "- [\u00a0] a": 3, "- [\t] a": 3,
		"\u200b- [ ] a": 4, "– [ ] a": 3, "• [ ] a": 3, "[ ] a": 1, "1.[ ] a": 3, "1) [-] a": 4, "- \\[ ] a": 3, "- \\[x\\] a": 3, "- ［ ］ a": 3,
		"- ☐ a": 3, "☑ a": 1, "- [✓] a": 3, "- [х] a": 3, "    - [ ] a": 7, "-      [ ] a": 8, "Text\n2. [ ] a": 4, "<details>\n- [ ] a": 3,
		"- [ ] a\n\nText\n\n    - [ ] b": 7,
	} {
		_, problems := testfile.Parse("f.md", []byte(front+line+"\n\n- [ ] last\n"))
		want := fmt.Sprintf("f.md:%d:%d: the line begins like an item and is none", 4+strings.Count(line, "\n"), column)
		if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), want) {
			t.Errorf("%q: %v, want %s", line, problems, want)
		}
	}
}

func TestAListWithoutAnItemAndAConflictAreMistakes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"Text\n\n- The page opens\n- The cart works":                       "f.md:6:1: the list has no item",
		"1. The page opens":                                                "f.md:4:1: the list has no item",
		"* The page opens\n\n  - [x](https://e.com)":                       "f.md:4:1: the list has no item",
		"- [ ] a\n<<<<<<< HEAD\n- [ ] b\n=======\n- [ ] c\n>>>>>>> change": "f.md:5:1: git left the marks of a conflict",
		"- [ ] a\n||||||| base":                                            "f.md:5:1: git left the marks of a conflict",
		"Text\n---\n\n***\n- - -\nText - a list?":                          "",
		"```\n- code\n```":                                                 "",
	} {
		_, problems := testfile.Parse("f.md", []byte(front+body))
		if got := fmt.Sprint(problems); want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || !strings.HasPrefix(got, "["+want)) {
			t.Errorf("%q: %v, want %s", body, problems, want)
		}
	}
	_, problems := testfile.Parse("f.md", []byte("---\n<<<<<<< HEAD\nurl: https://a.example\n=======\nurl: https://b.example\n>>>>>>> x\n---\n"))
	if len(problems) != 1 || problems[0].Line != 2 || !strings.Contains(problems[0].Message, "conflict") {
		t.Errorf("a conflict in the front matter: %v", problems)
	}
}

func TestAChangeTouchesATestByItsGlobs(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		paths   []string
		changed string
		touched bool
	}{
		{nil, "README.md", true},
		{nil, "", false},
		{[]string{"src/**"}, "src/a/b.go", true},
		{[]string{"src/**"}, "source/a.go", false},
		{[]string{"**/*.css"}, "main.css", true},
		{[]string{"**/*.css"}, "a/b/main.css", true},
		{[]string{"src/*.go"}, "src/a/b.go", false},
		{[]string{"src/"}, "src/a/b.go", true},
		{[]string{"a+b/?.go"}, "a+b/c.go", true},
		{[]string{"src/**"}, "qa/one.md", true}, // its own file
	} {
		var changed []string
		if row.changed != "" {
			changed = []string{row.changed}
		}
		if got := (testfile.Test{File: "qa/one.md", Paths: row.paths}).Touched(changed); got != row.touched {
			t.Errorf("%v and %q: %v", row.paths, row.changed, got)
		}
	}
}

// What is written is read again, whatever a stranger's text is made of.
func TestAWrittenTestIsReadAgain(t *testing.T) {
	t.Parallel()
	for _, hostile := range []string{"plain", "---\nurl: https://evil.example", "- [ ] critical: x -> y", "# a: b", "`\"'{[", "```\nx\n```", "a\x1b[2J",
		"1. [ ] x", "1. x", "> - [ ] x", "-[ ] x", "☐ x", "[ ] x", "<!-- x", "<details>\nx", "~~~\nx", "<<<<<<< x\n>>>>>>> y", "a\n    - [ ] x", "x\n=======",
	} {
		in := testfile.Test{
			URL: "https://example.com/" + fmt.Sprintf("?q=%x", hostile), Title: hostile, Description: hostile, Type: "custom",
			Items: []testfile.Item{{Description: hostile, Expected: hostile, Severity: "major"}, {Description: "last", Severity: "minor"}},
		}
		raw, err := testfile.Write(in)
		must.NoError(t, err)
		out, problems := testfile.Parse("f.md", raw)
		if len(problems) > 0 || out.URL != in.URL || len(out.Items) != 2 || out.Items[0].Severity != "major" || out.Items[1].Description != "last" ||
			strings.Contains(string(raw), "\x1b") {
			t.Errorf("%q becomes %v %+v\n%s", hostile, problems, out, raw)
		}
	}
}

func TestTheSchemaAgreesWithTheReader(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(testfile.Schema())
	must.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	must.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	must.NoError(t, compiler.AddResource("test.json", doc))
	schema, err := compiler.Compile("test.json")
	must.NoError(t, err)
	keys := strings.Split(checkout, "---\n")[1]
	for text, valid := range map[string]bool{
		keys: true, "url: https://example.com": true, "title: x": false, "url: https://example.com\ntype: fast": false,
		"url: https://example.com\nsla: 5": false, "url: https://example.com\npaths: src/**": true, "url: https://e.com\nspeed: 1": false,
		"url: https://example.com\npath: /x": false,
	} {
		var v any
		must.NoError(t, yaml.Unmarshal([]byte(text), &v))
		raw, err := json.Marshal(v)
		must.NoError(t, err)
		v, err = jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
		must.NoError(t, err)
		bySchema := schema.Validate(v) == nil
		_, problems := testfile.Parse("f.md", []byte("---\n"+strings.TrimSpace(text)+"\n---\n"))
		if bySchema != valid || slices.Equal(problems, nil) != valid {
			t.Errorf("%q: by the schema %v, read with %v, want %v", text, bySchema, problems, valid)
		}
	}
}

// The client cannot import the service, but its test can.
func TestTheClientKnowsEveryTypeOfTest(t *testing.T) {
	t.Parallel()
	var types []string
	for _, kind := range job.Types() {
		types = append(types, string(kind))
	}
	properties, _ := testfile.Schema()["properties"].(map[string]any)
	kind, _ := properties["type"].(map[string]any)
	if got := fmt.Sprint(kind["enum"]); got != fmt.Sprint(types) {
		t.Errorf("it takes the types %s, the service %s", got, types)
	}
}
