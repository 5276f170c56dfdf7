package project_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/project"
)

func TestAChatIsSetChangedEndedAndRemoved(t *testing.T) {
	t.Parallel()
	chat := func(sealed, reports, id string) project.ChatSet {
		return project.ChatSet{Chat: project.Chat{Sealed: sealed, Address: map[bool]string{true: "hooks.slack.com …a1b2"}[sealed != ""], Reports: reports}, ChangeID: id, At: t1}
	}
	decides := func(set project.ChatSet) decide {
		return func(s project.State) ([]domain.Event, error) { return project.DecideChat(s, set) }
	}
	first := chat("s1", "failures", "1")
	ended := project.ChatSet{Chat: project.Chat{Address: "hooks.slack.com …a1b2", Ended: "the chat answered 410"}, ChangeID: "3", At: t1}
	afterEnd := ended
	afterEnd.Reports = "failures"
	set := chat("s1", "", "1")
	all := chat("s1", "all", "1")
	given(t, created()).When(decides(set)).Happens(&all)
	given(t, created(), &first).When(decides(first)).Nothing() // a repeat
	more, kept := chat("", "all", "2"), chat("s1", "all", "2")
	given(t, created(), &first).When(decides(more)).Happens(&kept)
	other, otherKept := chat("s2", "", "2"), chat("s2", "failures", "2")
	given(t, created(), &first).When(decides(other)).Happens(&otherKept)
	given(t, created(), &first).When(decides(chat("", "failures", "2"))).Nothing()
	given(t, created(), &first).When(decides(ended)).Happens(&afterEnd)
	given(t, created(), &first, &afterEnd).When(decides(chat("", "all", "4"))).Invalid("chat.url")
	given(t, created()).When(decides(chat("", "all", "4"))).Invalid("chat.url")
	gone := chat("", "", "5")
	given(t, created(), &first).When(decides(gone)).Happens(&gone)
	given(t, created(), &afterEnd).When(decides(gone)).Happens(&gone)
	given(t, created()).When(decides(gone)).Nothing()
	given(t).When(decides(first)).NotFound("project")
}
