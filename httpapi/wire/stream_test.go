package wire

import (
	"testing"
)

func TestWhoAsksForAStream(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/*": false,
		"text/event-stream":                         true,
		"TEXT/Event-Stream":                         true,
		"text/event-stream, */*":                    true,
		"application/json, text/event-stream;q=0.5": false,
		"text/event-stream;q=0":                     false,
	} {
		if got := WantsEvents([]string{accept}); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}
