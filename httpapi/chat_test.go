package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/chattest"
)

func TestTheAddressOfAChatIsNeverShown(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	account, key := s.account(100)
	_, other := s.account(100)
	id := s.project(key, `{"name":"Shop"}`)
	var answers strings.Builder
	call := func(key, method, path, body string) result {
		t.Helper()
		got := s.call(key, method, path, body)
		answers.WriteString(got.Body.String())
		return got
	}
	patch := func(key, chat string) result {
		t.Helper()
		return call(key, "PATCH", "/v1/projects/"+id, `{"chat":`+chat+`}`)
	}
	read := func() any {
		t.Helper()
		return call(key, "GET", "/v1/projects/"+id, "").want(http.StatusOK)["chat"]
	}
	equal(t, read(), nil)
	shown := func(reports string) any {
		return map[string]any{"address": "hooks.slack.com …a1b2", "reports": reports, "ended": nil}
	}
	equal(t, patch(key, `{"url":"`+chattest.Slack+`","reports":"Failures"}`).want(http.StatusOK)["chat"], shown("failures"))
	equal(t, read(), shown("failures"))
	equal(t, patch(key, `{"reports":"all"}`).want(http.StatusOK)["chat"], shown("all")) // the address stays
	equal(t, patch(key, `{"url":"`+chattest.Slack+`"}`).want(http.StatusOK)["chat"], shown("all"))
	patch(other, `null`).refused(http.StatusNotFound, domain.CodeNotFound)
	patch(other, `{"url":"`+chattest.Discord+`"}`).refused(http.StatusNotFound, domain.CodeNotFound)
	for text, path := range map[string]string{
		`{"url":"https://chat.example.com/` + chattest.Secret + `"}`:              "chat.url",
		`{"url":"https://127.0.0.1/services/` + chattest.Secret + `"}`:            "chat.url",
		`{"url":"http://hooks.slack.com/services/T0/B0/` + chattest.Secret + `"}`: "chat.url",
		`{"url":"` + chattest.Slack + `","reports":"none"}`:                       "chat.reports",
		`{}`: "chat.url", `"` + chattest.Slack + `"`: "chat",
	} {
		got := patch(key, text)
		equal(t, got.paths(), []string{path})
		if path == "chat.url" && !strings.Contains(got.Body.String(), "make an incoming webhook there") {
			t.Errorf("the refusal of %s has another next step", text)
		}
	}
	equal(t, read(), shown("all"))

	address, changeID, err := s.commands.ChatAddress(t.Context(), account, id)
	if err != nil || address != chattest.Slack {
		t.Fatalf("the address is %q, %v", address, err)
	}
	if err := s.commands.EndChat(t.Context(), account, id, changeID, "the chat answered 410"); err != nil {
		t.Fatal(err)
	}
	ended := call(key, "PATCH", "/v1/projects/"+id, `{"name":"Shop"}`).want(http.StatusOK)["chat"]
	equal(t, ended, any(map[string]any{"address": "hooks.slack.com …a1b2", "reports": "all", "ended": "the chat answered 410"}))
	equal(t, patch(key, `{"reports":"failures"}`).paths(), []string{"chat.url"}) // the address is forgotten
	patch(key, `{"url":"`+chattest.Teams+`"}`).want(http.StatusOK)
	equal(t, call(key, "PATCH", "/v1/projects/"+id, `{"clear":["chat"]}`).want(http.StatusOK)["chat"], nil)
	equal(t, read(), nil)
	equal(t, call(key, "GET", "/v1/exports/events", "").Code, http.StatusOK)
	equal(t, call(key, "GET", "/v1/events", "").Code, http.StatusOK)
	call(key, "GET", "/v1/activity", "").want(http.StatusOK)
	for what, text := range map[string]string{"answer": answers.String(), "log": s.stored(), "words": s.logged.String()} {
		if strings.Contains(text, chattest.Secret) {
			t.Errorf("the %s shows the address", what)
		}
	}
}
