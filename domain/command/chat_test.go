package command_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/project"
	"humanqa/internal/testing/must"
)

func TestAChatThatEndsLeavesALaterOneAlone(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	p, err := b.CreateProject(t.Context(), b.cause(), command.CreateProject{Name: "Shop"})
	must.NoError(t, err)
	address := func() (url, changeID string) {
		t.Helper()
		url, changeID, err := b.ChatAddress(t.Context(), b.cause().AccountID, p.ProjectID)
		must.NoError(t, err)
		return url, changeID
	}
	set := func(url string) {
		t.Helper()
		_, err := b.SetChat(t.Context(), b.cause(), p.ProjectID, url, project.Chat{Address: "shown"})
		must.NoError(t, err)
	}
	end := func(changeID string) {
		t.Helper()
		must.NoError(t, b.EndChat(t.Context(), b.cause().AccountID, p.ProjectID, changeID, "the chat answered 410"))
	}
	if url, _ := address(); url != "" {
		t.Errorf("a project has a chat at %s", url)
	}
	set("https://one.example")
	url, first := address()
	if url != "https://one.example" {
		t.Errorf("the address is %q", url)
	}
	other := b.cause()
	other.AccountID = "somebody-else"
	_, err = b.SetChat(t.Context(), other, p.ProjectID, "https://theirs.example", project.Chat{Address: "shown"})
	wantKind(t, err, domain.KindNotFound)
	_, _, err = b.ChatAddress(t.Context(), "somebody-else", p.ProjectID)
	wantKind(t, err, domain.KindNotFound)
	wantKind(t, b.EndChat(t.Context(), "somebody-else", p.ProjectID, first, "x"), domain.KindNotFound)

	set("https://two.example")
	end(first) // its answer came after the change
	url, second := address()
	if url != "https://two.example" {
		t.Errorf("the later address is %q", url)
	}
	_, err = b.SuspendAccount(t.Context(), operator(), b.account)
	must.NoError(t, err)
	end(second)
	end(second)
	if url, _ := address(); url != "" {
		t.Errorf("the address outlives its end: %s", url)
	}
	var told []project.Chat
	must.NoError(t, b.log.Load(t.Context(), domain.ProjectStream(p.ProjectID), 0, func(r domain.Recorded) error {
		if e, ok := r.Event.(*project.ChatSet); ok {
			told = append(told, e.Chat)
		}
		return nil
	}))
	if len(told) != 3 || told[0].Sealed == "" || told[0].Sealed == "https://one.example" || told[2] != (project.Chat{Address: "shown", Reports: "all", Ended: "the chat answered 410"}) {
		t.Errorf("the log says %+v", told)
	}
}
