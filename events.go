package humanqa

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed docs/event-zero.md
var catalogue string

// EventMeanings gives the meaning of each type of event, as docs/event-zero.md tells it.
var EventMeanings = sync.OnceValue(func() map[string]string {
	meanings := map[string]string{}
	_, events, _ := strings.Cut(catalogue, "\n## The events\n")
	for _, event := range strings.Split(events, "\n#### ")[1:] {
		name, about, _ := strings.Cut(event, "\n")
		line, _, _ := strings.Cut(about, "\n")
		_, meaning, _ := strings.Cut(line, ". ") // behind the version
		meanings[name] = strings.ReplaceAll(meaning, "`", "")
	}
	return meanings
})
