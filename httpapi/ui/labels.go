package ui

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// labels gives each cell of a table but the first of its row the name of its column
// (data-label). On a narrow screen a row is a card, and its cells show these names
// (page.css); no script is needed. The parts of a page that is sent in parts are given
// one after the other: labels remembers the place in a table at which the last one ended.
type labels struct {
	columns []string // of the table that is open; nil: none
	heads   bool     // in its head
	cell    int      // of the row
	column  *strings.Builder
}

// add gives a part of a page with its labels. Bytes that are no cell stay as they are.
func (l *labels) add(part []byte) []byte {
	if l.columns == nil && !bytes.Contains(part, []byte("<table class=\"table")) {
		return part
	}
	out := bytes.NewBuffer(make([]byte, 0, len(part)+len(part)/16))
	tokens := html.NewTokenizer(bytes.NewReader(part))
	var tag []byte
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return out.Bytes() // its end
		}
		raw := tokens.Raw()
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			tag = append(tag[:0], raw...) // reading its attributes changes the tokenizer's bytes
			raw = tag
			if label := l.open(tokens); label != "" {
				out.WriteString(`<td data-label="` + html.EscapeString(label) + `"`)
				raw = raw[len("<td"):]
			}
		case html.EndTagToken:
			name, _ := tokens.TagName()
			l.close(atom.Lookup(name))
		case html.TextToken:
			if l.column != nil {
				l.column.WriteString(html.UnescapeString(string(raw)))
			}
		case html.CommentToken, html.DoctypeToken, html.ErrorToken:
		}
		out.Write(raw)
	}
}

// open follows a tag, and gives the label of a cell; empty: it has none.
func (l *labels) open(tokens *html.Tokenizer) string {
	name, more := tokens.TagName()
	tag := atom.Lookup(name)
	classes, wide := "", false
	for more {
		var key, value []byte
		key, value, more = tokens.TagAttr()
		switch string(key) {
		case "class":
			classes = string(value)
		case "colspan":
			wide = true
		}
	}
	if tag == atom.Table {
		l.columns, l.heads = nil, false
		if slices.Contains(strings.Fields(classes), "table") {
			l.columns = []string{}
		}
		return ""
	}
	if l.columns == nil {
		return ""
	}
	switch tag {
	case atom.Thead:
		l.heads = true
	case atom.Tr:
		l.cell = 0
	case atom.Th:
		if l.heads {
			l.column = new(strings.Builder)
		} else {
			l.cell++
		}
	case atom.Span:
		if l.column != nil && slices.Contains(strings.Fields(classes), "hidden-text") {
			l.column = nil // a column of buttons needs no name
			l.columns = append(l.columns, "")
		}
	case atom.Td:
		l.cell++
		if !wide && l.cell > 1 && l.cell <= len(l.columns) {
			return l.columns[l.cell-1]
		}
	default:
	}
	return ""
}

func (l *labels) close(tag atom.Atom) {
	switch tag {
	case atom.Table:
		*l = labels{}
	case atom.Thead:
		l.heads = false
	case atom.Th:
		if l.column != nil {
			l.columns = append(l.columns, strings.Join(strings.Fields(l.column.String()), " "))
			l.column = nil
		}
	default:
	}
}
