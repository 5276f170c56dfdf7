package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/testing/chattest"
	"humanqa/internal/testing/pagetest"
)

func TestAChatIsSetTestedAndRemovedOnItsPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, theirs := w.account("Acme", 100), w.account("Globex", 0)
	dev := w.Joined("Dee", person.Grant{Role: person.Developer, AccountID: account})
	viewer := w.Joined("Vi", person.Grant{Role: person.Viewer, AccountID: account})
	other := w.Joined("Eve", person.Grant{Role: person.Owner, AccountID: theirs})
	p, err := w.Commands.CreateProject(t.Context(), pagetest.Client(account), command.CreateProject{Name: "Shop & @everyone"})
	w.Shown(p.Position, err)
	path := "/dashboard/projects/" + p.ProjectID + "/chat"
	chat := chattest.Start(t)
	chats.Store(w.BaseURL, chat)
	call := func(g guest, method, path string, form url.Values, status int, has ...string) string {
		t.Helper()
		got := w.Call(g, method, path, form)
		if got.Status != status || strings.Contains(got.Body, chattest.Secret) {
			t.Fatalf("%s %s: %d, or it shows the address:\n%s", method, path, got.Status, got.Body)
		}
		for _, text := range has {
			if !strings.Contains(got.Body, text) {
				t.Errorf("%s %s is without %q:\n%s", method, path, text, got.Body)
			}
		}
		return got.Body
	}
	call(dev, "GET", path, nil, 200, "No chat is set.", `name="address"`)
	if body := call(viewer, "GET", path, nil, 200, "No chat is set."); strings.Contains(body, `name="address"`) {
		t.Error("a viewer gets the form")
	}
	set := url.Values{"address": {" " + chattest.Slack + " "}, "reports": {"failures"}}
	call(viewer, "POST", path, set, 403)
	call(other, "POST", path, set, 404)
	call(other, "POST", path+"/test", nil, 404)
	call(dev, "POST", path+"/test", nil, 409, "has no chat")
	call(dev, "POST", path, url.Values{"address": {"https://chat.example.com/hooks/" + chattest.Secret}, "reports": {"all"}}, 422,
		"must be the whole address of an incoming webhook of Slack (hooks.slack.com)", `aria-invalid="true"`)
	call(dev, "POST", path, url.Values{"reports": {"all"}}, 422, "is missing")
	call(dev, "POST", path, set, 303)
	call(dev, "GET", path, nil, 200, "hooks.slack.com …a1b2", "failures only", `value="failures" checked`)
	call(dev, "GET", "/dashboard/projects/"+p.ProjectID, nil, 200, "hooks.slack.com …a1b2 hears of failures.")
	call(dev, "POST", path, url.Values{"reports": {"all"}}, 303) // the address stays
	call(dev, "GET", path, nil, 200, "hooks.slack.com …a1b2", "all reports")

	call(dev, "POST", path+"/test", nil, 200, "The chat took the test message.")
	got := chat.Messages()
	if len(got) != 1 || got[0].Host != "hooks.slack.com" || !strings.Contains(got[0].Body, "Shop \\u0026amp; @\u200beveryone") {
		t.Fatalf("the chat got %+v", got)
	}
	chat.Status(http.StatusNotFound, "no_service at /services/T0/B0/"+chattest.Secret+"/a1b2 <b>")
	call(dev, "POST", path+"/test", nil, 200, "The test message was not taken.", "the chat answered 404")
	chat.Answer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	call(dev, "POST", path+"/test", nil, 200, "reach the chat: ")

	_, changeID, err := w.Commands.ChatAddress(t.Context(), account, p.ProjectID)
	w.Must(err)
	w.Must(w.Commands.EndChat(t.Context(), account, p.ProjectID, changeID, "the chat answered 410"))
	at, err := w.Log.Head(t.Context())
	w.Shown(at, err)
	call(dev, "GET", path, nil, 200, "Nothing is sent any more.", "The reason: the chat answered 410.", " required")
	call(viewer, "GET", "/dashboard/projects/"+p.ProjectID, nil, 200, `id="chat-ended"`)
	call(dev, "POST", path, url.Values{"remove": {"1"}}, 303)
	call(dev, "GET", path, nil, 200, "No chat is set.")
	call(dev, "POST", path, url.Values{"remove": {"1"}}, 303) // a repeat
}
