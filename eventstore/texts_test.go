package eventstore

import (
	"errors"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
)

// What Postgres has no text for is told by the field, also where the API's rules were
// not asked; what only looks like it is stored as it is.
func TestATextThatNoReadModelCouldShowIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	report := func(note string) domain.Event {
		return &job.Completed{Items: []job.ReportItem{{Note: "fine"}, {Note: note}}}
	}
	actor := newEvent(&account.Suspended{Reason: "r"})
	actor.Meta.Actor = "person:\x00"
	for name, c := range map[string]struct {
		event domain.NewEvent
		want  string // nothing: it is taken
	}{
		"NUL":                     {newEvent(&account.Suspended{Reason: "a\x00b"}), "reason: must not contain NUL"},
		"NUL in a list":           {newEvent(report("\x00")), "items[1].note: must not contain NUL"},
		"no UTF-8":                {newEvent(report("a\xff")), "items[1].note: must be valid UTF-8"},
		"half a character":        {newEvent(&account.Suspended{Reason: "\xe2\x82"}), "reason: must be valid UTF-8"},
		"NUL in the metadata":     {actor, "actor: must not contain NUL"},
		"a replacement character": {newEvent(&account.Suspended{Reason: "\uFFFD"}), ""},
		"what reads like escapes": {newEvent(&account.Suspended{Reason: `\u0000 \ufffd \\u0000`}), ""},
		"other controls":          {newEvent(&account.Suspended{Reason: "\x01\x1f\x7f\t\n"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Encode(c.event)
			var refusal *domain.Error
			_ = errors.As(err, &refusal)
			switch {
			case c.want == "" && err != nil, c.want != "" && refusal == nil:
				t.Fatalf("got %v, want %q", err, c.want)
			case refusal != nil && (refusal.Kind != domain.KindInvalid || !strings.HasPrefix(refusal.Message, c.want)):
				t.Errorf("got %+v, want %q", refusal, c.want)
			}
		})
	}
}
