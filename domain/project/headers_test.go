package project

import (
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
)

func TestTheNamesAndValuesOfOwnHeaders(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"authorization": "Authorization", "x-Env": "X-Env", "Cookie": "Cookie", "X-API_KEY": "X-Api_key", strings.Repeat("a", 64): "A" + strings.Repeat("a", 63),
	} {
		if got, wrong := HeaderName(name); got != want || wrong != "" {
			t.Errorf("%s is %q: %s", name, got, wrong)
		}
	}
	for _, name := range []string{
		"", " ", "a b", "X-A:", "X\r\nY", "X-É", "{x}", strings.Repeat("a", 65), "host", "Content-Type", "CONTENT-LENGTH", "content-encoding", "Connection", "keep-alive", "te",
		"trailer", "transfer-encoding", "upgrade", "proxy-authorization", "user-agent", "accept-encoding", "webhook-id", "Webhook-Signature", "x-service-signature", "X-Service-Other", "Expect", "via", "forwarded", "Sec-Fetch-Mode",
	} {
		if _, wrong := HeaderName(name); wrong == "" {
			t.Errorf("%q may be an own header", name)
		}
	}
	for value, fits := range map[string]bool{
		"Bearer abc": true, "~": true, strings.Repeat("v", 2048): true, "": false, strings.Repeat("v", 2049): false, " a": false, "a ": false,
		"a\r\nHost: b": false, "a\nb": false, "a\x00": false, "a\tb": false, "é": false, "\xff": false,
	} {
		if wrong := HeaderValue(value); (wrong == "") != fits {
			t.Errorf("%.20q: %q", value, wrong)
		}
	}
	long, one := strings.Repeat("v", 2048), "1"
	var many = map[string]*string{}
	for i := range 21 {
		many["X-"+strings.Repeat("a", i+1)] = &one
	}
	for want, change := range map[string]map[string]*string{
		"webhookHeaders": {"X-A": &long, "X-B": &long}, "webhookHeaders.x-a": {"X-A": &one, "x-a": &one}, "webhookHeaders.Host": {"Host": &one}, "": {"X-A": &one, "X-B": nil},
	} {
		wrong := CheckHeaders(change)
		if want == "" && len(wrong) == 0 {
			continue
		}
		if len(wrong) != 1 || wrong[0].Path != want {
			t.Errorf("%q: %v", want, wrong)
		}
	}
	if wrong := CheckHeaders(many); len(wrong) != 1 || wrong[0].Path != "webhookHeaders" {
		t.Errorf("%d names: %v", len(many), wrong)
	}
}

func TestAChangeOfOwnHeaders(t *testing.T) {
	t.Parallel()
	own := func(pairs ...string) (all []OwnHeader) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, OwnHeader{Name: pairs[i], Sealed: "sealed " + pairs[i+1], Fingerprint: pairs[i+1]})
		}
		return all
	}
	change := func(s State, c UpdateCommand) (State, []domain.Event) {
		t.Helper()
		events, err := DecideUpdate(s, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			s = Evolve(s, e)
		}
		return s, events
	}
	url := func(u string) *string { return &u }
	set := func(pairs ...string) *HeadersChange { return &HeadersChange{Set: own(pairs...)} }
	sent := func(s State, want ...string) {
		t.Helper()
		if got := s.SentHeaders(); !slices.Equal(got, own(want...)) {
			t.Errorf("sent are %v, want %v", got, want)
		}
	}

	s := State{Exists: true, Name: "Shop", Secret: Secret{ID: "s"}}
	s, events := change(s, UpdateCommand{Headers: set("X-A", "1")})
	if len(events) != 0 {
		t.Errorf("without a URL: %v", events)
	}
	s, _ = change(s, UpdateCommand{
		Changes: Changes{WebhookURL: url("https://a.example/in")}, Headers: set("X-A", "1", "X-B", "2"), KeyID: "k",
	})
	sent(s, "X-A", "1", "X-B", "2")
	again := own("X-A", "1")
	again[0].Sealed = "sealed anew"
	if s, events = change(s, UpdateCommand{Headers: &HeadersChange{Set: again}}); len(events) != 0 {
		t.Errorf("the same value again: %v", events)
	}
	s, _ = change(s, UpdateCommand{Headers: &HeadersChange{Set: own("X-A", "3", "X-C", "4"), Remove: []string{"X-B", "X-Z"}}})
	sent(s, "X-A", "3", "X-C", "4")

	elsewhere, _ := change(s, UpdateCommand{Changes: Changes{WebhookURL: url("https://b.example/in")}})
	sent(elsewhere)
	back, _ := change(elsewhere, UpdateCommand{Changes: Changes{WebhookURL: url("https://A.example:443/other")}})
	sent(back, "X-A", "3", "X-C", "4")
	taken, _ := change(elsewhere, UpdateCommand{Headers: set("X-N", "5")})
	sent(taken, "X-N", "5")
	taken, _ = change(taken, UpdateCommand{Changes: Changes{WebhookURL: url("https://a.example/in")}})
	sent(taken)

	cleared, _ := change(s, UpdateCommand{Changes: Changes{WebhookURL: url("")}})
	sent(cleared)
	none, _ := change(s, UpdateCommand{Headers: &HeadersChange{Clear: true}})
	sent(none)
	if _, events = change(none, UpdateCommand{Headers: &HeadersChange{Clear: true}}); len(events) != 0 {
		t.Errorf("cleared again: %v", events)
	}
	var eleven []string
	for i := range MaxHeaders + 1 {
		eleven = append(eleven, "X-"+string(rune('A'+i)), "1")
	}
	if _, err := DecideUpdate(none, UpdateCommand{Headers: set(eleven...)}); !domain.IsKind(err, domain.KindInvalid) {
		t.Errorf("eleven headers: %v", err)
	}
	if _, err := DecideUpdate(none, UpdateCommand{Headers: set(eleven[2:]...)}); err != nil {
		t.Errorf("ten headers: %v", err)
	}
}
