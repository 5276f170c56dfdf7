package projects

import (
	"strings"

	"humanqa/domain"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/internal/chat"
	"humanqa/projections/projects"
)

type chatView struct {
	Project projects.Project
	Tested  bool   // a test message was just sent
	Failure string // why the chat did not take it; empty: it did
}

func (d Deps) chat(_ *ui.Request, p projects.Project) (ui.Answer, error) {
	return showChat(chatView{Project: p}), nil
}

func showChat(v chatView) ui.Answer { return ui.Show("chat", "Chat of "+v.Project.Name, v) }

// setChat sets the chat or removes it. An empty address keeps the one that there is. A
// refused form comes back without the address: a page never shows one.
func (d Deps) setChat(r *ui.Request, p projects.Project) (ui.Answer, error) {
	r.Named("chat.url", "address")
	r.Named("chat.reports", "reports")
	body := map[string]any{"chat": nil}
	if r.PostFormValue("remove") == "" {
		body["chat"] = map[string]any{"url": strings.TrimSpace(r.PostFormValue("address")), "reports": r.PostFormValue("reports")}
	}
	o := ui.Object(body)
	set := input.ChatChange(o)
	if err := o.Problems.Err(); err != nil {
		return ui.Answer{}, err
	}
	at, err := d.Commands.SetChat(r.Context(), r.Cause(), p.ID, set.URL, set.Chat)
	return r.Done(at, err, "/dashboard/projects/"+p.ID+"/chat")
}

// testChat posts a message at once, and shows the answer of the chat.
func (d Deps) testChat(r *ui.Request, p projects.Project) (ui.Answer, error) {
	address, _, err := d.Commands.ChatAddress(r.Context(), p.AccountID, p.ID)
	if err == nil && address == "" {
		err = domain.Conflict("the project has no chat").WithHint("set its address first")
	}
	if err != nil {
		return ui.Answer{}, err
	}
	v := chatView{Project: p, Tested: true}
	line := chat.Line{Text: "A test message: notices of " + p.Name + " come here.", Link: d.BaseURL + "/dashboard/projects/" + p.ID}
	if err := d.Chats.Post(r.Context(), address, []chat.Line{line}, ""); err != nil {
		v.Failure = err.Error()
	}
	return showChat(v), nil
}
