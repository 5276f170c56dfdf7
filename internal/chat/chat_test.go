package chat_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"humanqa/internal/chat"
	"humanqa/internal/guard"
	"humanqa/internal/testing/chattest"
	"humanqa/internal/testing/must"
)

func TestTheHostOfAnAddressTellsItsService(t *testing.T) {
	t.Parallel()
	for raw, taken := range map[string]bool{
		chattest.Slack: true, chattest.Discord: true, chattest.Teams: true,
		"https://HOOKS.slack.com/services/T0/B0/0123456789":                                                                   true,
		"https://ptb.discord.com/api/webhooks/12/0123456789":                                                                  true,
		"https://discordapp.com/api/webhooks/12/0123456789":                                                                   true,
		"https://acme.webhook.office.com/webhookb2/0123456789":                                                                true,
		"https://default0.a1.environment.api.powerplatform.com:443/powerautomate/automations/direct/workflows/0123456789?x=1": true,
		"http://hooks.slack.com/services/T0/B0/0123456789":                                                                    false, // no TLS
		"https://hooks.slack.com.evil.example/services/T0/B0/0123456789":                                                      false,
		"https://evilhooks.slack.com/services/T0/B0/0123456789":                                                               false,
		"https://me:pw@hooks.slack.com/services/T0/B0/0123456789":                                                             false,
		"https://hooks.slack.com:8080/services/T0/B0/0123456789":                                                              false,
		"https://hooks.slack.com/services":                                                                                    false, // a part of one
		"https://discord.com/channels/123456789012/34567":                                                                     false,
		"https://webhook.office.com.example/webhookb2/0123456789":                                                             false,
		"https://chat.example.com/hooks/0123456789012345":                                                                     false,
		"https://127.0.0.1/services/T0/B0/0123456789":                                                                         false,
		"hooks.slack.com/services/T0/B0/0123456789":                                                                           false,
	} {
		_, err := chat.Shown(raw)
		if (err == nil) != taken {
			t.Errorf("%s: %v", raw, err)
		}
		if err != nil && strings.Contains(err.Error(), "0123456789") {
			t.Errorf("the refusal of %s shows it: %v", raw, err)
		}
	}
	_, err := chat.Shown("https://chat.example.com/hooks/0123456789012345")
	for _, name := range []string{"hooks.slack.com", "discord.com/api/webhooks", "webhook.office.com", "copy it there"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the refusal is without %s: %v", name, err)
		}
	}
	if got, err := chat.Shown(chattest.Slack); err != nil || got != "hooks.slack.com …a1b2" {
		t.Errorf("shown as %q, %v", got, err)
	}
}

// The texts of clients ring no one, and make no link and no form.
const hostile = "<!channel> <@U1> @everyone <https://evil.example|Sign in> https://evil.example [x](https://evil.example) www.evil.example *b* `c` & \\ \"\n\u202e%s%[1]s"

const page = "https://qa.example/dashboard/jobs/j1"

func posted(t *testing.T, address string, lines ...chat.Line) string {
	t.Helper()
	s := chattest.Start(t)
	must.NoError(t, s.Poster.Post(t.Context(), address, lines, "https://qa.example/dashboard"))
	got := s.Messages()
	if len(got) != 1 || !json.Valid([]byte(got[0].Body)) {
		t.Fatalf("it got %+v", got)
	}
	return got[0].Body
}

func decoded[T any](t *testing.T, body string) (out T) {
	t.Helper()
	must.NoError(t, json.Unmarshal([]byte(body), &out))
	return out
}

func quiet(t *testing.T, text string) {
	t.Helper()
	unescaped := strings.ReplaceAll(text, `\<`, "")
	for _, loud := range []string{"@everyone", "<!channel", "<@", "https://evil", "www.evil", "%!"} {
		if strings.Contains(unescaped, loud) {
			t.Errorf("the message has %q: %s", loud, text)
		}
	}
}

func TestSlackIsToldInItsForm(t *testing.T) {
	t.Parallel()
	got := decoded[struct {
		Text   string
		Blocks []struct {
			Type string
			Text struct {
				Type, Text string
				Verbatim   bool
			}
		}
	}](t, posted(t, chattest.Slack, chat.Line{Text: "2 notices"}, chat.Line{Text: hostile, Link: page}))
	if len(got.Blocks) != 1 || got.Blocks[0].Type != "section" || got.Blocks[0].Text.Type != "mrkdwn" || !got.Blocks[0].Text.Verbatim || got.Text != "2 notices\n" {
		t.Fatalf("%+v", got)
	}
	text := got.Blocks[0].Text.Text
	quiet(t, text)
	if !strings.HasPrefix(text, "2 notices\n&lt;!channel&gt; ") || !strings.HasSuffix(text, "\n<"+page+"|Open>\n") || strings.Count(text, "<") != 1 || !strings.Contains(text, "&amp; \\ \"") {
		t.Errorf("the text is %q", text)
	}
}

func TestDiscordIsToldInItsForm(t *testing.T) {
	t.Parallel()
	got := decoded[struct {
		Content  string
		Mentions struct{ Parse []string } `json:"allowed_mentions"`
	}](t, posted(t, chattest.Discord, chat.Line{Text: hostile, Link: page}))
	quiet(t, got.Content)
	if got.Mentions.Parse == nil || len(got.Mentions.Parse) != 0 {
		t.Errorf("mentions are %v", got.Mentions.Parse)
	}
	if !strings.HasPrefix(got.Content, `\<!channel\> `) || !strings.HasSuffix(got.Content, "\n<"+page+">\n") || !strings.Contains(got.Content, `\[x\]\(`) || !strings.Contains(got.Content, "\\*b\\* \\`c\\`") {
		t.Errorf("the content is %q", got.Content)
	}
}

func TestTeamsIsToldInItsForm(t *testing.T) {
	t.Parallel()
	type run struct {
		Type, Text string
		Action     *struct{ Type, URL string } `json:"selectAction"`
	}
	got := decoded[struct {
		Type        string
		Attachments []struct {
			ContentType string
			Content     struct {
				Type, Version string
				Body          []struct {
					Type    string
					Inlines []run
				}
			}
		}
	}](t, posted(t, chattest.Teams, chat.Line{Text: hostile, Link: page}))
	if got.Type != "message" || len(got.Attachments) != 1 || got.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" ||
		got.Attachments[0].Content.Type != "AdaptiveCard" || len(got.Attachments[0].Content.Body) != 1 {
		t.Fatalf("%+v", got)
	}
	block := got.Attachments[0].Content.Body[0]
	if block.Type != "RichTextBlock" || len(block.Inlines) != 2 || block.Inlines[0].Type != "TextRun" || block.Inlines[0].Action != nil ||
		block.Inlines[1].Action == nil || block.Inlines[1].Action.Type != "Action.OpenUrl" || block.Inlines[1].Action.URL != page {
		t.Fatalf("%+v", block)
	}
	if strings.Contains(block.Inlines[0].Text, "@everyone") || strings.Contains(block.Inlines[0].Text, "https://evil") {
		t.Errorf("the text is %q", block.Inlines[0].Text)
	}
}

func TestALongMessageIsCutToItsServicesLimit(t *testing.T) {
	t.Parallel()
	lines := []chat.Line{{Text: "80 notices"}}
	for range 80 {
		lines = append(lines, chat.Line{Text: strings.Repeat("\U0001f600&<*", 90), Link: page})
	}
	content := decoded[struct{ Content string }](t, posted(t, chattest.Discord, lines...)).Content
	if n := utf8.RuneCountInString(content); n > 2000 || !strings.Contains(content, " more are on the dashboard.\n<https://qa.example/dashboard>") {
		t.Errorf("%d characters, which end as %q", n, content[max(0, len(content)-200):])
	}
	slack := decoded[struct {
		Blocks []struct{ Text struct{ Text string } }
	}](t, posted(t, chattest.Slack, lines...)).Blocks[0].Text.Text
	if n := utf8.RuneCountInString(slack); n > 3000 || !strings.Contains(slack, " more are on the dashboard.") {
		t.Errorf("%d characters", n)
	}
	if body := posted(t, chattest.Teams, lines...); len(body) > 28<<10 || !strings.Contains(body, " more are on the dashboard.") {
		t.Errorf("%d bytes", len(body))
	}
	if two := posted(t, chattest.Discord, lines[0], chat.Line{Text: "One", Link: page}); strings.Contains(two, "more are") {
		t.Errorf("a short one is cut: %s", two)
	}
}

func TestAChatsAnswerIsToldWithoutItsAddress(t *testing.T) {
	t.Parallel()
	s := chattest.Start(t)
	post := func() error {
		return s.Poster.Post(t.Context(), chattest.Slack, []chat.Line{{Text: "x"}}, "")
	}
	for status, gone := range map[int]bool{404: true, 410: true, 400: false, 403: false, 429: false, 500: false, 302: false} {
		s.Status(status, "no_service at /services/T0/B0/"+chattest.Secret+"/a1b2 \x00\n", "Retry-After", "7", "Location", "https://evil.example/")
		answer, answered := errors.AsType[*chat.Error](post())
		if !answered || answer.Status != status || answer.Gone != gone || answer.After != 7*time.Second || strings.Contains(answer.Error(), chattest.Secret) {
			t.Errorf("%d: %+v", status, answer)
		}
	}
	for _, wait := range []string{"soon", "-1", "86400", "99999999999999999999"} {
		s.Status(429, "", "Retry-After", wait)
		if answer, _ := errors.AsType[*chat.Error](post()); answer == nil || answer.After < 0 || answer.After > 2*time.Hour {
			t.Errorf("Retry-After %s: %+v", wait, answer)
		}
	}
	s.Answer(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	if err := post(); err == nil || strings.Contains(err.Error(), chattest.Secret) || strings.Contains(err.Error(), "slack") {
		t.Errorf("an answer that breaks off: %v", err)
	}
	if got := len(s.Messages()); got < 12 {
		t.Errorf("a redirect was followed, or not asked: %d messages", got)
	}
	for _, m := range s.Messages() {
		if m.Host != "hooks.slack.com" {
			t.Errorf("a message went to %s", m.Host)
		}
	}
}

// A name of a chat may lead anywhere, some day.
func TestAChatIsDialledAtPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	here := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it is called") }))
	defer here.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, here.URL, http.NoBody)
	must.NoError(t, err)
	resp, err := chat.New().Client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, guard.ErrBlocked) {
		t.Errorf("this machine is dialled: %v", err)
	}
	if err := chat.New().Post(t.Context(), here.URL+"/services/0123456789", []chat.Line{{Text: "x"}}, ""); err == nil {
		t.Error("another host is told")
	}
}
