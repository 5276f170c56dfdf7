package main

import (
	"strings"
	"testing"

	"humanqa/eventstore"
)

// A replay of an account never passes over a job whose first event cannot be read.
func TestAReplayOfAnAccountEndsAtAFirstEventThatIsNoJSON(t *testing.T) {
	t.Parallel()
	told := 0
	read := ofAccount("acc", "job", func(eventstore.RawEvent) error { told++; return nil })
	for _, data := range []string{`{"accountId":"acc"}`, `{"accountId":"other"}`, `{"$unreadable":{}}`} {
		if err := read(eventstore.RawEvent{Stream: "job-" + data, Data: []byte(data)}); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
	err := read(eventstore.RawEvent{Stream: "job-7", Data: []byte(`{"accountId":`)})
	if told != 1 || err == nil || !strings.Contains(err.Error(), "job-7") {
		t.Errorf("%d events were told, and then %v", told, err)
	}
}
