package mail

import (
	"fmt"
	"slices"
	"strings"

	"humanqa/internal/chat"
	"humanqa/internal/fence"
)

// letter is one message, ready to be sent.
type letter struct {
	ID      string // of the row; the Message-ID begins with it
	To      string
	Subject string
	Text    string
	Stop    string // the link that ends letters such as this one
}

const (
	// mostTold is how many notices a letter lists.
	mostTold = 50
	// maxTitle bounds the texts of others, in characters.
	maxTitle = 120
)

// confirmLetter holds nothing that a person wrote: the address may be a stranger's.
func confirmLetter(id, to, link, host, stop string) letter {
	return letter{
		ID: id, To: to, Subject: "Confirm your e-mail address", Stop: stop,
		Text: fmt.Sprintf("A member of %s wants notices at this address.\n\nOpen this link to confirm that it is yours. It works for seven days.\n\n%s\n\n"+
			"Ignore this letter if you did not ask for it.\n\n-- \nGet no such letter again: %s\n", host, link, stop),
	}
}

// digestLetter tells the notices, the oldest first. more is the number of those that it
// does not list.
func digestLetter(id, to string, told []Notice, more int, links Links, stop string) letter {
	var text strings.Builder
	for _, n := range told {
		fmt.Fprintf(&text, "%s\n", headline(n))
		if project := oneLine(n.Project); project != "" && (n.Kind == Report || n.Kind == Question) {
			fmt.Fprintf(&text, "Project: %s\n", project)
		}
		fmt.Fprintf(&text, "%s\n\n", links.Page(n.Path))
	}
	if more > 0 {
		fmt.Fprintf(&text, "%d more are on the dashboard.\n%s\n\n", more, links.Page("/dashboard"))
	}
	fmt.Fprintf(&text, "-- \nChange your notifications: %s\nStop all e-mail: %s\n", links.Page("/dashboard/notifications"), stop)
	return letter{ID: id, To: to, Subject: subject(told, more), Text: text.String(), Stop: stop}
}

// chatLines tells the notices of a letter in the chat of their project.
func chatLines(told []Notice, links Links) (lines []chat.Line) {
	if len(told) > 1 {
		lines = append(lines, chat.Line{Text: subject(told, 0)})
	}
	for _, n := range told {
		line := chat.Line{Text: headline(n), Link: links.Page(n.Path)}
		if project := oneLine(n.Project); project != "" && (n.Kind == Report || n.Kind == Question) {
			line.Text = project + ": " + line.Text
		}
		lines = append(lines, line)
	}
	return lines
}

// headline is a notice in one line.
func headline(n Notice) string {
	return oneLine(n.Title) + ": " + oneLine(n.Verdict)
}

// subject is the headline of one notice, or counts several.
func subject(told []Notice, more int) string {
	if len(told) == 1 && more == 0 {
		return headline(told[0])
	}
	failed := 0
	for _, n := range told {
		if n.Failed {
			failed++
		}
	}
	s := fmt.Sprintf("%d notices", len(told)+more)
	if project := oneLine(told[0].Project); project != "" &&
		!slices.ContainsFunc(told, func(n Notice) bool { return n.Project != told[0].Project }) {
		s += " from " + project
	}
	switch {
	case failed == 1:
		s += ", 1 test failed"
	case failed > 1:
		s += fmt.Sprintf(", %d tests failed", failed)
	}
	return s
}

// oneLine makes a short line of a text that a client or a server wrote: it ends no header
// and hides nothing.
func oneLine(text string) string { return fence.Written(text, maxTitle) }
