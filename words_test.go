package humanqa_test

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// plainer are phrases that pages, mails, errors and commands once had, each with the
// words that took its place (CONTRIBUTING.md, "Rules for the code").
var plainer = map[string]string{
	"Please mend this":                 "Please fix this:",
	"Nothing was tested yet":           "No tests yet.",
	"Go on":                            "Continue",
	"Needs you":                        "Needs attention",
	"Failed lately":                    "Recent failures",
	"four times in a row":              "the true number of attempts",
	"See them":                         "View",
	"Yours alone":                      "Only you see these",
	"What still fails in this project": "Items that still fail are added automatically.",
	"Before all others":                "Goes first, costs double",
	"If nobody can test it":            "You get them back if no checker tests it in time.",
	"The address the host":             "This host is private or reserved. Enter a public address.",
	"in 60 minutes at the latest":      "Due within 60 minutes, or your credits are refunded.",
	"written by rules":                 "Generated",
	"Step through all":                 "Replay step by step",
	"Given up":                         "Could not be tested",
	"given up":                         "could not be tested",
	"by another look":                  "Runs the same checklist again.",
	"Verify what is ticked":            "Keep for the next test",
	"failed check again":               "retest the failed check",
	"has no such thing":                "because it does not apply",
	"How to see it":                    "Steps to reproduce",
	"A word to the checker":            "Note to the checker",
	"Perhaps":                          "Possible fix:",
	"Keeps what belongs":               "Groups tests, open failures, trend and webhook.",
	"They come along":                  "Retested with every test of this project until they pass.",
	"What was sent, its secret":        "Deliveries, secret and test event",
	"Gets a signed POST":               "Receives a signed POST per event. Leave empty to turn off.",
	"Your server fails since":          "Your server has been failing since",
	"Waiting for your word":            "Held events",
	"signs on for":                     "The old one keeps working for 24 hours",
	"also what cannot be chosen":       "All events, including claims, missed deadlines and cancellations",
	"Nor is webhook":                   "webhook-signature is not made with this secret.",
	"Tell us below":                    "Warn when credits fall below",
	"nobody is ever told":              "0 turns the warning off.",
	"are the balance, at every line":   "Each balance = opening balance + changes so far.",
	"Whatever uses":                    "Anything using … stops working immediately.",
	"Make a key":                       "Create key",
	"Nobody here ever tests":           "Members never test this account's jobs.",
	"Who looked from outside":          "Access by staff",
	"is started by POST":               "a button",
	"a part to play":                   "each in a role",
	"it does not start":                "the session will not start",
	"A moment that all":                "Bookmark a moment for everyone.",
	"How far · ":                       "Progress",
	"Here, not ready":                  "In the lobby",
	"All that wait":                    "All waiting",
	"Fits what you have":               "Matches my devices",
	"Take it":                          "Start",
	"When something urgent":            "Alerts for urgent tests:",
	"Found beside the list":            "Other findings",
	"What you saw":                     "Notes",
	"Take back":                        "Undo",
	"Give it back":                     "Return to queue",
	"It cannot be tested":              "Can't be tested",
	"something else was in the way":    "blocked",
	"Unchecked items":                  "9 items have no verdict yet.",
	"is not yours any more":            "You no longer hold this test.",
	"What you say here":                "This never hides tests from you.",
	"One a line":                       "One per line.",
	"deserves a second look":           "Confirm your identity to continue.",
	"do not fit together":              "Wrong name or password.",
	"You come in by invitation":        "Access is by invitation.",
	"Lost your way in":                 "Lost access?",
	"Ways in":                          "Sign-in methods",
	"its clock is yours":               "you control the clock",
	"What gets due":                    "Anything that falls due happens automatically",
	"Tests that wait":                  "Waiting tests",
	"Everybody who may":                "Everyone with access, and pending invitations.",
	"Circles of":                       "Groups of checkers.",
	"What follows the log":             "Read models and their position in the log.",
	"Operators’ acts":                  "Audit log",
	"Operators' acts":                  "Audit log",
	"What is wrong now":                "Current problems",
	"What was passed over":             "Skipped events",
	"had an event passed over":         "skipped an event in",
	"is known to nobody":               "Only the prefix is stored.",
	"are only said to be set":          "Secrets are masked.",
	"not shown again":                  "shown again only after you confirm your identity",
	"What operators did":               "Audit log",
	"Look into it":                     "Open them",
	"Make a link":                      "Create a link",
	"Needs a script":                   "Needs JavaScript",
	"needs a script":                   "needs JavaScript",
	"All of it<":                       "Show all",
	"make them a new link":             "create a new link",
	"do not suffice":                   "You do not have enough credits.",
	"It is late":                       "The test is overdue.",
	"Somebody has to help":             "The agent needs help.",
	"was not heard of":                 "sent nothing",
	"Last heard of":                    "Last activity",
	"last heard of":                    "last activity",
}

// bare are words that stand for a person or a thing that the sentence does not name.
var bare = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|anybody|everybody|whatever)\b`)

var (
	action   = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	verbatim = regexp.MustCompile(`(?s)<(pre|code|svg)\b.*?</(pre|code|svg)>`)
	shown    = regexp.MustCompile(`\b(?:aria-label|placeholder|title|alt|data-[a-z]+)="([^"]*)"`)
	tag      = regexp.MustCompile(`(?s)<[^>]*>`)
	script   = regexp.MustCompile("'((?:[^'\\\\\n]|\\\\.)*)'|`([^`]*)`")
	clause   = regexp.MustCompile(`[.!?;:]["”)]?(\s|$)|\n`)
	word     = regexp.MustCompile(`[\pL\pN][\pL\pN’'-]*`)
)

// said are the texts of a file that people can read: those of a template beside its tags
// and actions, and the literals of a program that are more than a name.
func said(t *testing.T, file, text string) (out []string) {
	t.Helper()
	switch {
	case strings.HasSuffix(file, ".html"):
		text = verbatim.ReplaceAllString(action.ReplaceAllString(text, "\x00"), "\x00")
		for _, m := range shown.FindAllStringSubmatch(text, -1) {
			out = append(out, strings.Split(m[1], "\x00")...)
		}
		for _, part := range strings.Split(tag.ReplaceAllString(text, "\x00"), "\x00") {
			out = append(out, strings.Join(strings.Fields(part), " "))
		}
	case strings.HasSuffix(file, ".ts"):
		for line := range strings.Lines(text) {
			if strings.HasPrefix(strings.TrimSpace(line), "//") {
				continue
			}
			for _, m := range script.FindAllStringSubmatch(line, -1) {
				out = append(out, m[1]+m[2])
			}
		}
	default:
		var s scanner.Scanner
		set := token.NewFileSet()
		s.Init(set.AddFile(file, set.Base(), len(text)), []byte(text), nil, 0)
		for {
			_, kind, literal := s.Scan()
			if kind == token.EOF {
				return out
			}
			if kind == token.STRING {
				if words, err := strconv.Unquote(literal); err == nil && strings.Contains(words, " ") {
					out = append(out, words)
				}
			}
		}
	}
	return out
}

// A reader with ordinary English understands each text at once.
func TestTextsAreInPlainEnglish(t *testing.T) {
	t.Parallel()
	read := 0
	for file, text := range files(t, ".html", ".go", ".ts") {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "internal/testing/") || strings.HasPrefix(file, "bench/") ||
			strings.HasPrefix(file, "tools/") || strings.Contains(file, "/assets/dist/") || strings.Contains(file, "/vendor/") {
			continue
		}
		page := strings.HasSuffix(file, ".html")
		for _, words := range said(t, file, text) {
			read++
			for phrase, better := range plainer {
				if strings.Contains(words, phrase) {
					t.Errorf("%s says %q: write %q (%.80q)", file, phrase, better, words)
				}
			}
			if one := bare.FindString(words); one != "" && file != "internal/pgdev/owner.go" { // it names the user nobody
				t.Errorf("%s says %q: name the person or the thing (%.120q)", file, one, words)
			}
			if !page {
				continue
			}
			for _, one := range clause.Split(words, -1) {
				if n := len(word.FindAllString(one, -1)); n > 30 {
					t.Errorf("%s has a sentence of %d words, more than 30: %q", file, n, one)
				}
			}
		}
	}
	if read < 3000 {
		t.Errorf("only %d texts read", read)
	}
}
