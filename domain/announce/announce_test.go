package announce_test

import (
	"slices"
	"testing"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/session"
)

// A kind whose event the log does not know would never be announced; two kinds
// of one name, or of one event, could not be told apart.
func TestEveryKindAnnouncesOneEventOfTheLogUnderItsOwnName(t *testing.T) {
	t.Parallel()
	logged := map[string]domain.Event{}
	for _, spec := range slices.Concat(job.Specs(), loop.Specs(), session.Specs()) {
		logged[spec.New().EventType()] = spec.New()
	}
	names := map[string]bool{}
	for _, k := range announce.Kinds() {
		e := logged[k.Type]
		if e == nil {
			t.Errorf("%s announces %q, which the log does not know, or which another kind announces", k.Name, k.Type)
			continue
		}
		delete(logged, k.Type)
		if names[k.Name] {
			t.Errorf("two kinds are named %s", k.Name)
		}
		names[k.Name] = true
		if ended, ok := e.(*loop.Ended); ok {
			ended.Alert = true
		}
		if got, announced := announce.Of(e); !announced || got.Name != k.Name {
			t.Errorf("a %s is announced as %q", k.Type, got.Name)
		}
	}
	for _, e := range logged {
		if k, announced := announce.Of(e); announced {
			t.Errorf("a %s is announced as %s", e.EventType(), k.Name)
		}
	}
}

func TestASnoozedLoopIsNotAnnounced(t *testing.T) {
	t.Parallel()
	if k, announced := announce.Of(&loop.Ended{Alert: false}); announced {
		t.Errorf("announced as %s", k.Name)
	}
}

func TestAnEventOfAnUnknownTypeIsNotAnnounced(t *testing.T) {
	t.Parallel()
	if _, announced := announce.Of(nil); announced {
		t.Error("it is announced")
	}
}

// The list is the specification's ("Event kinds").
func TestWhatAListMayName(t *testing.T) {
	t.Parallel()
	want := []string{
		"job.created", "job.completed", "job.ai_report_ready", "job.session_ready", "job.session_completed", "loop_session.ended",
	}
	if got := announce.Subscribable(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
