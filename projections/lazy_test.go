package projections_test

import (
	"testing"

	"humanqa/eventstore/consumer"
	"humanqa/projections"
)

// Whoever reads a lazy read model is shown what the others show. A process that
// does not run them can only tell by those that handle the same events.
func TestWhatALazyReadModelHandlesIsHandledByOneThatIsWaitedFor(t *testing.T) {
	waited := map[string]bool{}
	for _, c := range projections.All() {
		if _, lazy := c.(consumer.Lazy); !lazy {
			for _, eventType := range c.Handles() {
				waited[eventType] = true
			}
		}
	}
	for _, c := range projections.All() {
		if c.Name() != "events" {
			continue
		}
		for _, eventType := range c.Handles() {
			if !waited[eventType] {
				t.Errorf("%s is handled by %s alone", eventType, c.Name())
			}
		}
	}
}
