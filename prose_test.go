package humanqa_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sentenceWords is how many words a sentence has at most.
const sentenceWords = 30

var (
	fenced     = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	rowOfTable = regexp.MustCompile(`^\|[\s:|-]+\|$`)
	listed     = regexp.MustCompile(`^(?:[-*]|\d+\.)\s+`)
	inCode     = regexp.MustCompile("`[^`]*`")
	linked     = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	sentence   = regexp.MustCompile(`[.!?]["”)]*\s+["“(]?[A-Z0-9]`)
	packageDoc = regexp.MustCompile(`(?m)((?:^//.*\n)+)package `)
	// A pronoun where a noun belongs. The relative "the person who" has its noun.
	bareSubject = regexp.MustCompile(`(?i)(?:(?:^|[;:(–—] ?|\b(?:and|or|but|that|because|so) )(?:who|whose|what)\b|\b(?:nobody|somebody|anybody|everybody|whoever)\b)`)
)

// sentences are those of a document: of its paragraphs, entries of lists and cells of
// tables, without headings and code. A piece of code within a sentence is one word.
func sentences(paragraphs []string) (all []string) {
	for _, text := range paragraphs {
		text = inCode.ReplaceAllString(linked.ReplaceAllString(text, "$1"), "CODE")
		for {
			end := sentence.FindStringIndex(text)
			if end == nil {
				break
			}
			all, text = append(all, strings.TrimSpace(text[:end[1]-1])), text[end[1]-1:]
		}
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, text)
		}
	}
	return all
}

func paragraphsOfMarkdown(text string) (all []string) {
	for paragraph := range strings.SplitSeq(fenced.ReplaceAllString(text, "\n"), "\n\n") {
		open := false // the last paragraph goes on
		for line := range strings.Lines(paragraph) {
			line = strings.TrimSpace(line)
			entry := listed.FindString(line)
			switch {
			case line == "" || strings.HasPrefix(line, "#") || rowOfTable.MatchString(line):
				open = false
			case strings.HasPrefix(line, "|"):
				all, open = append(all, strings.Split(strings.Trim(line, "|"), "|")...), false
			case open && entry == "":
				all[len(all)-1] += " " + line
			default:
				all, open = append(all, line[len(entry):]), true
			}
		}
	}
	return all
}

// paragraphsOfGo are those of the file's package comment.
func paragraphsOfGo(text string) []string {
	comment := packageDoc.FindStringSubmatch(text)
	if comment == nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(comment[1]) {
		line = strings.TrimPrefix(strings.TrimRight(line, "\n"), "//")
		if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") {
			line = "" // a drawing or code
		}
		lines = append(lines, line)
	}
	return paragraphsOfMarkdown(strings.Join(lines, "\n"))
}

// retired are words that were true once, each with the words that are. No text may say them
// again in another place.
var retired = map[string]string{
	"stays with the old one":                      "the attempts of a delivery alternate between the two secrets",
	"while a rotation overlaps, with the old one": "the attempts of a delivery alternate between the two secrets",
	"X-Service-Signature` carries the old":        "the attempts of a delivery alternate between the two secrets",
	"X-Service-Signature` is that of the old":     "the attempts of a delivery alternate between the two secrets",
	"X-Service-Signature` is made with the old":   "the attempts of a delivery alternate between the two secrets",
}

func TestNoTextSaysWhatIsNoLongerTrue(t *testing.T) {
	t.Parallel()
	for _, ending := range []string{".md", ".yaml", ".html", ".go"} {
		for file, text := range files(t, ending) {
			text = strings.Join(strings.Fields(text), " ")
			for said, now := range retired {
				if file != "prose_test.go" && strings.Contains(text, said) {
					t.Errorf("%s says %q: write that %s", file, said, now)
				}
			}
		}
	}
}

// A reader with ordinary English reads the documents once: no sentence is longer than
// thirty words, and each has its noun.
func TestTheSentencesOfTheDocumentsAreShortAndHaveTheirNouns(t *testing.T) {
	t.Parallel()
	read := 0
	check := func(file string, paragraphs []string) {
		for _, s := range sentences(paragraphs) {
			read++
			if n := len(strings.Fields(s)); n > sentenceWords {
				t.Errorf("%s has a sentence of %d words, more than %d: %s", file, n, sentenceWords, s)
			}
			if bare := bareSubject.FindString(s); bare != "" && !strings.HasSuffix(s, "?") {
				t.Errorf("%s says %q without a noun: %s", file, strings.TrimSpace(bare), s)
			}
		}
	}
	for file, text := range files(t, ".md") {
		root := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "GOALS.md"}
		if slices.Contains(root, file) || path.Dir(file) == "docs" {
			check(file, paragraphsOfMarkdown(text))
		}
	}
	for file, text := range files(t, ".go") {
		if !strings.HasSuffix(file, "_test.go") {
			check(file, paragraphsOfGo(text))
		}
	}
	if read < 2000 {
		t.Errorf("only %d sentences found: does the test still know what one looks like?", read)
	}
}

func TestABadSentenceIsFound(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", sentenceWords)
	got := sentences(paragraphsOfMarkdown("# Who\n\nOne. Two, in `three words here`!\n" + long + "word.\n\n- four\n  more\n\n| five | six. Seven |\n|---|---|\n```\ncode\n```\n"))
	want := []string{"One.", "Two, in CODE! " + long + "word.", "four more", "five", "six.", "Seven"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := sentences(paragraphsOfGo("// Package a does it.\n//\n//\ta drawing\n//\n// It ends.\npackage a\n")); !slices.Equal(got, []string{"Package a does it.", "It ends."}) {
		t.Errorf("of a package comment: %q", got)
	}
	for text, bare := range map[string]bool{
		"Who asks waits.": true, "The person who asks waits.": false, "Nobody waits.": true, "It waits, and what came is kept.": true,
		"It shows what came.": false, "It is a list: whose it is, it does not say.": true,
	} {
		if bareSubject.MatchString(text) != bare {
			t.Errorf("%q: want %v", text, bare)
		}
	}
}

// A document that grows beyond these is not read.
func TestTheDocumentsStayShort(t *testing.T) {
	t.Parallel()
	documents := files(t, ".md")
	if n := len(strings.Fields(documents["ARCHITECTURE.md"])); n > 1800 {
		t.Errorf("ARCHITECTURE.md has %d words, more than 1,800", n)
	}
	if n := strings.Count(documents["CONTRIBUTING.md"], "\n"); n > 80 {
		t.Errorf("CONTRIBUTING.md has %d lines, more than 80", n)
	}
	versions := strings.Split(documents["CHANGELOG.md"], "\n## ")[1:]
	for _, version := range versions {
		if n := strings.Count(version, "\n") + 1; n > 60 {
			t.Errorf("CHANGELOG.md says %s in %d lines, more than 60", strings.Fields(version)[0], n)
		}
	}
	if len(versions) < 2 {
		t.Errorf("CHANGELOG.md has %d versions", len(versions))
	}
	if n := len(regexp.MustCompile(`(?m)^\| [^|-]`).FindAllString(documents["docs/glossary.md"], -1)) - 1; n < 20 || n > 40 {
		t.Errorf("docs/glossary.md has %d terms: want 20 to 40", n)
	}
}
