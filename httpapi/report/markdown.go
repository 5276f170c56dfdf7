package report

import (
	_ "embed"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/internal/fence"
)

// The Markdown form is for people: pull requests, chats. Testers and clients wrote
// the texts in it, so none of them may become markup. Coding agents read it, too: the
// whole of it is fenced as data.

//go:embed markdown.tmpl
var markdownText string

// markdown is a report. Its last line says how long the links work, which a reader cannot see
// (decisions, "Links in exports").
var markdown = template.Must(template.New("report").Funcs(template.FuncMap{
	"inline": inline, "autolink": autolink, "note": markdownNote, "answer": markdownAnswer, "reason": Job.reason,
	"stamp": func(at time.Time) string { return at.UTC().Format(wire.TimestampLayout) },
}).Parse(markdownText))

func writeMarkdown(o Outcome) ([]byte, error) {
	var b strings.Builder
	_, single := o.single()
	err := markdown.Execute(&b, struct {
		Outcome
		Single, Linked bool
	}{o, single, slices.ContainsFunc(o.Jobs, Job.hasLinks)})
	return []byte(fence.Document("testers and pages", b.String())), err
}

func (t Job) hasLinks() bool {
	return t.Report != nil && (t.Report.RecordingURL != "" ||
		slices.ContainsFunc(t.Report.Items, func(i job.ReportItem) bool { return len(i.Screenshots()) > 0 }))
}

func markdownAnswer(q job.Question) string {
	switch {
	case q.Status != job.QuestionAnswered:
		return "none"
	case q.HasSecret:
		return strings.TrimSpace(inline(q.Answer) + " (with a secret)")
	}
	return inline(q.Answer)
}

func markdownNote(i job.ReportItem) string {
	var parts []string
	for _, s := range []string{inline(i.Reason), inline(i.Note)} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	for _, shown := range i.Screenshots() {
		parts = append(parts, autolink(shown))
	}
	return strings.Join(parts, " — ")
}

// autolink writes a URL as a link to itself. It escapes nothing with a backslash, which
// would become a part of the URL.
func autolink(u string) string {
	if u == "" || strings.ContainsFunc(u, func(c rune) bool { return c <= ' ' || c == 0x7f || c == '<' || c == '>' }) {
		return inline(u)
	}
	var b strings.Builder
	for _, c := range u {
		if c == '|' || wire.Unseen(c) { // a bar would end a table's cell
			b.WriteString(url.PathEscape(string(c)))
		} else {
			b.WriteRune(c)
		}
	}
	return "<" + b.String() + ">"
}

// markup are the characters that CommonMark and GitHub's tables give a meaning within a
// line. Characters with a meaning only at a line's start stand there only in a summary,
// where inline escapes them.
const markup = "\\`*_[]<>#|~&$"

// numbered matches the start of a numbered list.
var numbered = regexp.MustCompile(`^(\d+)([.)])`)

// web matches the start of a host that GitHub's Markdown links without a scheme.
var web = regexp.MustCompile(`(?i)(www)\.`)

// wordJoiner shows nothing and takes no room. The fence keeps it behind an at sign.
const wordJoiner = '\u2060'

// inline writes a text so that it shows as it is, on one line. Nothing in it acts as
// markup, HTML, a link or a mention, or on a reader of plain text.
func inline(s string) string {
	var b strings.Builder
	for _, word := range strings.Fields(fence.Plain(s)) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		for i, c := range word {
			switch {
			case strings.ContainsRune(markup, c), b.Len() == 0 && i == 0 && strings.ContainsRune("-+=", c):
				b.WriteByte('\\')
				b.WriteRune(c)
			case c == '@': // no escape keeps it from being a mention
				b.WriteRune(c)
				b.WriteRune(wordJoiner)
			default:
				b.WriteRune(c)
			}
		}
	}
	text := numbered.ReplaceAllString(b.String(), `$1\$2`)
	return web.ReplaceAllString(strings.ReplaceAll(text, "://", `\://`), `$1\.`)
}
