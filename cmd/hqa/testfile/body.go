package testfile

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	heading = regexp.MustCompile(`^#\s+(.+?)\s*#*$`)
	graded  = regexp.MustCompile(`^(?i:(critical|major|minor))\s*:\s*(.+)$`)
	result  = regexp.MustCompile(`\s+(?:->|→)\s+`)

	// listed matches a line of a list: its indentation, its mark and its text. rule matches
	// signs alone, which are no list.
	listed = regexp.MustCompile(`^(?:[ \t]*> ?)*([ \t]*)((?:[-*+]|\d{1,9}[.)])[ \t]+)([^ \t].*)$`)
	rule   = regexp.MustCompile(`^[ \t]*(?:[-*_=][ \t]*){3,}$`)
	// box matches the text of a task, as GitHub renders it.
	box = regexp.MustCompile(`^\[[ xX]\](?:[ \t]+(.*)|$)`)
	// boxlike matches a line that begins like a task: a box behind signs alone. A link, such
	// as [x](url), is none.
	boxlike = regexp.MustCompile(`^([^\pL#|\\\x60"'“„(\[［【☐☑☒]*)` +
		`(?:\\?[\[［【][\pZ\p{Cf}\t]*[xXхХ×✓✔✗~.-]?[\pZ\p{Cf}\t]*\\?[\]］】](?:[^(\[:]|$)|[☐☑☒])`)
	// opening matches the first line of a block of code, of a comment or of HTML. GitHub
	// renders no task in these.
	opening = regexp.MustCompile("^[ \t>]*(?:(`{3,})[^`]*$|(~{3,}|<!--)|" +
		`(<)/?(?i:details|summary|div|section|table|tr|td|th|ul|ol|li|p|center|blockquote|h[1-6])[\s/>])`)
	// breaking matches a line that ends a paragraph although it is no list and no block.
	breaking = regexp.MustCompile(`^[ \t]*(?:>|#{1,6}[ \t])`)
	// unmerged matches the lines that git leaves where two changes meet.
	unmerged = regexp.MustCompile(`^(?:<{7}|\|{7}|>{7})(?: |$)`)
	// leading matches the signs that make a line of Markdown more than text.
	leading = regexp.MustCompile(`^(?:[^\pL\pN\p{Sc}"'(]|\d+[.)](?:\s|$))+`)
)

// body reads the heading, the description and the checklist.
func (p *parser) body(lines []string, from int) {
	var told []string
	var at layout
	firstList, problems := 0, len(p.problems)
	for i := from; i < len(lines); i++ {
		line := lines[i]
		listText, isList := at.next(line)
		like := boxlike.FindStringSubmatch(line)
		if task := box.FindStringSubmatch(listText); task != nil {
			first, column := i+1, utf8.RuneCountInString(strings.TrimSuffix(line, task[1]))+1
			for i+1 < len(lines) && continues(lines[i+1]) {
				i++
				task[1] += " " + strings.TrimSpace(lines[i])
			}
			p.item(first, column, task[1])
			continue
		}
		switch m := heading.FindStringSubmatch(line); {
		case at.inside != "" && at.inside != "<": // code or a comment, whose tasks are not meant
		case like != nil:
			p.wrong(i+1, utf8.RuneCountInString(like[1])+1, "the line begins like an item and is none: write - [ ] TEXT, indented by no more than its list")
		case isList && firstList == 0:
			firstList = i + 1
		case m != nil && at.inside == "" && p.test.Title == "":
			if p.test.Title = m[1]; utf8.RuneCountInString(p.test.Title) > maxTitle {
				p.wrong(i+1, 3, "the title is longer than %d characters", maxTitle)
			}
			continue
		}
		told = append(told, line)
	}
	p.test.Description = strings.TrimSpace(strings.Join(told, "\n"))
	if n := utf8.RuneCountInString(p.test.Text()); n > maxDescription {
		p.wrong(from+1, 1, "the text has %d characters with focus and language, at most %d are allowed", n, maxDescription)
	}
	if len(p.test.Items) > maxItems {
		p.wrong(p.test.Items[maxItems].Line, 1, "the checklist has more than %d items", maxItems)
	}
	if firstList > 0 && len(p.test.Items) == 0 && len(p.problems) == problems {
		p.wrong(firstList, 1, "the list has no item: begin each line of the checklist with - [ ]")
	}
}

// continues says that a line goes on with the text of the line before.
func continues(line string) bool {
	return strings.TrimSpace(line) != "" && !listed.MatchString(line) && !boxlike.MatchString(line) && !rule.MatchString(line) &&
		!opening.MatchString(line) && !breaking.MatchString(line)
}

// layout is the place of a line in a text.
type layout struct {
	inside string // the signs that opened the block around the line; empty: none
	open   string // the same for the next line
	list   int    // the column of the text of the latest list; 0: none
	blank  bool   // the line is empty
	text   bool   // the line is one of a paragraph
}

// next moves to the next line. It gives the text of a line of a list.
func (l *layout) next(line string) (listText string, isList bool) {
	wasBlank, wasText := l.blank, l.text
	if l.inside = l.open; l.inside == "" {
		if m := opening.FindStringSubmatch(line); m != nil {
			l.inside = m[1] + m[2] + m[3]
		}
	}
	l.blank, l.text = strings.TrimSpace(line) == "", false
	if l.inside != "" {
		if l.ends(line) {
			l.open = ""
		} else {
			l.open = l.inside
		}
		return "", false
	}
	indent := columns(line[:len(line)-len(strings.TrimLeft(line, " \t"))])
	m := listed.FindStringSubmatch(line)
	switch {
	case l.blank:
		return "", false
	case m == nil, rule.MatchString(line),
		columns(m[1]) > l.list+3, // code, or text of the paragraph above
		// A list that begins with another number than 1 does not end a paragraph.
		wasText && l.list == 0 && strings.ContainsAny(m[2], ".)") && m[2][:2] != "1." && m[2][:2] != "1)":
		if wasBlank && indent < l.list {
			l.list = 0
		}
		l.text = !breaking.MatchString(line)
		return "", false
	}
	l.list = columns(m[1] + m[2])
	if l.list > columns(m[1])+len(strings.TrimRight(m[2], " \t"))+4 { // code in a list
		return "", true
	}
	return m[3], true
}

// ends says that the line is the last one of the block around it.
func (l *layout) ends(line string) bool {
	switch l.inside {
	case "<":
		return l.blank
	case "<!--":
		return strings.Contains(line, "-->")
	}
	line = strings.Trim(line, " \t>")
	return l.open != "" && strings.HasPrefix(line, l.inside) && strings.Trim(line, l.inside[:1]) == ""
}

// columns is the width of white space and signs.
func columns(s string) (n int) {
	for _, c := range s {
		if n++; c == '\t' {
			n += (4 - n%4) % 4
		}
	}
	return n
}

func (p *parser) item(line, column int, s string) {
	item := Item{Severity: p.test.Severity, Line: line}
	if m := graded.FindStringSubmatch(s); m != nil {
		item.Severity, s = strings.ToLower(m[1]), m[2]
	}
	item.Description = strings.TrimSpace(s)
	if at := result.FindStringIndex(s); at != nil {
		item.Description, item.Expected = strings.TrimSpace(s[:at[0]]), strings.TrimSpace(s[at[1]:])
	}
	switch {
	case item.Description == "":
		p.wrong(line, column, "the item is empty")
	case utf8.RuneCountInString(item.Description) > maxItem || utf8.RuneCountInString(item.Expected) > maxItem:
		p.wrong(line, column, "the item is longer than %d characters", maxItem)
	}
	p.test.Items = append(p.test.Items, item)
}
