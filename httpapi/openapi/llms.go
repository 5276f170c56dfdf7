package openapi

import (
	"bytes"
	"fmt"
	"sync"

	"humanqa/integrations/skill"
	"humanqa/internal/fence"
)

// The texts for coding agents, as files beside the pages.
const (
	skillFile  = "skill.md"
	agentsFile = "agents.md"
)

func addAgentTexts(files map[string]File) {
	files[skillFile] = NewFile(markdownType, []byte(skill.Text))
	files[agentsFile] = NewFile(markdownType, []byte(skill.AgentsSection))
}

// LLMs is /llms.txt: a summary of the service and links to its texts, in the form of that
// proposal (a title, a summary, lists of links). base is the service's address. The lists
// are made of the document, so each page is in them.
func LLMs(base string) File {
	b := bookOf()
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n\n", b.Info.Title)
	out.WriteString("> People test web apps. Submit a URL; a person works through a checklist; the report comes by polling, by webhook or by a tool. " +
		"A test costs credits and takes minutes to an hour.\n\n")
	fmt.Fprintf(&out, "- Every call needs an API key: `Authorization: Bearer KEY`. An owner of the account makes one on the dashboard.\n"+
		"- Coding agents use the tools of the Model Context Protocol at %s/mcp, or the command line `hqa`.\n- %s\n", base, fence.Rule)
	link := func(name, path, about string) {
		fmt.Fprintf(&out, "- [%s](%s%s): %s\n", name, base, path, about)
	}
	out.WriteString("\n## For coding agents\n\n")
	link("Skill", "/docs/"+skillFile, "When to ask for a human test, what it costs, and how to loop until a report passes.")
	link("Section for AGENTS.md", "/docs/"+agentsFile, "What a repository that uses the service tells its agents.")
	out.WriteString("\n## Reference\n\n")
	link("Introduction", "/docs/"+introductionSlug+".md", "Keys, limits, idempotency, webhooks, and a quickstart in five languages.")
	for _, tag := range b.Tags {
		link(tag.Name, "/docs/"+slug(tag.Name)+".md", firstSentence(tag.Description))
	}
	link("Schemas", "/docs/"+schemasSlug+".md", "The objects that several calls share, as JSON Schema.")
	out.WriteString("\n## For programs\n\n")
	link("OpenAPI 3.1", "/v1/openapi-3.1.json", "The whole API with its webhooks.")
	link("OpenAPI 3.0", "/v1/openapi.json", "The same for older generators.")
	link("Types of events", "/docs/"+eventsFile, "Every event with its JSON Schema and examples.")
	out.WriteString("\n## Optional\n\n")
	link("The whole reference", "/llms-full.txt", "All pages of the reference in one text.")
	return NewFile(plain, out.Bytes())
}

// LLMsFull is /llms-full.txt: the whole reference.
var LLMsFull = sync.OnceValue(func() File { return NewFile(plain, Markdown().Body) })
