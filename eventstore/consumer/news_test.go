package consumer

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
)

func TestNewsAreBelievedOfTheLeasesOwnerOnly(t *testing.T) {
	t.Parallel()
	owner, at := "host:1/secret", eventstore.At(domain.Position{Commit: 7, Prepare: 7})
	news := generation.News(owner, at, "jobs", "history")
	for name, c := range map[string]struct {
		news    string
		owner   string
		believe bool
	}{
		"of the owner":         {news, owner, true},
		"of nobody known":      {news, "", false},
		"of another owner":     {generation.News("host:2/other", at, "jobs", "history"), owner, false},
		"changed on their way": {strings.Replace(news, "7 7", "8 8", 1), owner, false},
		"with one name more":   {strings.Replace(news, "history", "history people", 1), owner, false},
		"of the log's start":   {generation.News(owner, eventstore.Checkpoint{Start: true}, "jobs"), owner, false},
		"an older version's":   {"", owner, false},
		"no news":              {"jobs", owner, false},
		"blanks":               {"  ", owner, false},
		"of a stranger":        {"99 99 jobs ", "", false},
	} {
		a := newProgressTracker(nil, []Consumer{named{name: "jobs"}, named{name: "history"}, named{name: "people"}})
		if c.owner != "" {
			a.setOwner("jobs", c.owner)
		}
		if got := a.acceptNews(c.news); got != c.believe || a.hears.Load() != c.believe {
			t.Errorf("%s: believed is %v", name, got)
		}
		for projection, want := range map[string]bool{"jobs": c.believe, "history": c.believe, "people": false} {
			if got := generation.Reached(a.positionOf(projection), at.Position); got != want {
				t.Errorf("%s: %s is at %v", name, projection, a.positionOf(projection))
			}
		}
	}
}
