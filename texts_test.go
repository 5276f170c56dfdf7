package humanqa_test

import (
	"testing"

	"humanqa"
	"humanqa/eventstore"
)

func TestEveryEventHasAMeaning(t *testing.T) {
	t.Parallel()
	for _, name := range eventstore.Types() {
		if humanqa.Meaning(name) == "" {
			t.Errorf("docs/event-zero.md has no meaning of %s", name)
		}
	}
}
