package openapi

import (
	"bytes"
	"sync"
	"text/template"

	"humanqa/integrations/skill"
	"humanqa/internal/fence"
)

// addAgentTexts adds the texts for coding agents to the files beside the pages.
func addAgentTexts(files map[string]File) {
	files["skill.md"] = NewFile(markdownType, []byte(skill.Text))
	files["agents.md"] = NewFile(markdownType, []byte(skill.AgentsSection))
}

var llms = template.Must(template.New("llms.md").Funcs(template.FuncMap{"slug": slug, "first": firstSentence}).
	ParseFS(viewer, "viewer/llms.md"))

// LLMs is /llms.txt: a summary of the service and links to its texts, in the form of that
// proposal (a title, a summary, lists of links). base is the service's address. The lists
// are made of the document, so each page is in them.
func LLMs(base string) File {
	var out bytes.Buffer
	check(llms.Execute(&out, map[string]any{"Book": bookOf(), "Base": base, "Rule": fence.Rule}))
	return NewFile(plain, out.Bytes())
}

// LLMsFull is /llms-full.txt: the whole reference.
var LLMsFull = sync.OnceValue(func() File { return NewFile(plain, Markdown().Body) })
