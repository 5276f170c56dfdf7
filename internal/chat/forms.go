package chat

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Line is a line of a message. Text may be a stranger's: it is shown as it is, mentions and
// rings no one, and has no link. Link, which may be empty, is a page of ours.
type Line struct{ Text, Link string }

// service is a kind of chat, with the parts of its JSON.
type service struct {
	hosts []string          // each stands for all hosts that end so
	path  string            // begins the path
	limit int               // of all lines together, in bytes
	plain *strings.Replacer // of signs that have a meaning
	text  string            // of a line
	link  string
	body  string // with the lines, and with the first of them
}

var services = []service{
	{
		[]string{".hooks.slack.com"}, "/", 2900, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;"), `%s\n`, `<%s|Open>\n`,
		// Verbatim: Slack looks for no links and names. The text is for notifications.
		`{"text":"%[2]s","blocks":[{"type":"section","text":{"type":"mrkdwn","verbatim":true,"text":"%[1]s"}}]}`,
	},
	{
		[]string{".discord.com", ".discordapp.com"}, "/api/webhooks/", 1900,
		strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "~", `\~`, "`", "\\`", "|", `\|`, "<", `\<`, ">", `\>`,
			"[", `\[`, "]", `\]`, "(", `\(`, ")", `\)`, "#", `\#`, "-", `\-`),
		`%s\n`, `<%s>\n`, // the brackets want no preview
		`{"content":"%[1]s","allowed_mentions":{"parse":[]}}`,
	},
	{
		// Runs of an adaptive card are plain: Markdown is none there.
		[]string{".webhook.office.com", ".logic.azure.com", ".powerplatform.com"}, "/", 20_000, strings.NewReplacer(),
		`{"type":"TextRun","text":"%s\n"},`, `{"type":"TextRun","text":"Open\n","selectAction":{"type":"Action.OpenUrl","url":"%s"}},`,
		`{"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive","content":{` +
			`"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","type":"AdaptiveCard","version":"1.4",` +
			`"body":[{"type":"RichTextBlock","inlines":[%[1]s]}]}}]}`,
	},
}

// message has as many lines as the service takes, and counts the others.
func (s service) message(lines []Line, rest string) string {
	var all strings.Builder
	for i, l := range lines {
		more := s.line(Line{fmt.Sprintf("%d more are on the dashboard.", len(lines)-i), rest})
		one := s.line(l)
		if i > 0 && all.Len()+len(one)+len(more) > s.limit {
			all.WriteString(more)
			break
		}
		all.WriteString(one)
	}
	return fmt.Sprintf(s.body, strings.TrimSuffix(all.String(), ","), s.line(Line{Text: lines[0].Text}))
}

// calm breaks mentions, and the addresses of which chats make links. It adds no visible sign.
var calm = strings.NewReplacer("@", "@\u200b", "://", ":\u200b//", "www.", "www\u200b.")

func (s service) line(l Line) string {
	out := fmt.Sprintf(s.text, quoted(s.plain.Replace(calm.Replace(l.Text))))
	if l.Link != "" {
		out += fmt.Sprintf(s.link, quoted(l.Link))
	}
	return out
}

// quoted is the inside of a JSON string.
func quoted(text string) string {
	encoded, _ := json.Marshal(text) // a text always can be
	return string(encoded[1 : len(encoded)-1])
}
