// Package chat posts messages to the incoming webhooks of Slack, Discord and Teams.
//
// The host of an address tells the service, and so the form of its messages. A holder of the
// address can write to the chat, so it is a secret: no error and no log quotes it. It is
// dialled as a webhook is (internal/guard): public addresses only, no redirect, no proxy.
package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"humanqa/internal/backoff"
	"humanqa/internal/guard"
)

const (
	postTime = 8 * time.Second
	shortest = 20            // characters of an address behind its host
	shown    = 4             // the last of them
	longest  = 2 * time.Hour // that a chat may have us wait
)

// Error is an answer of a chat that did not take a message.
type Error struct {
	Status int
	Gone   bool          // the address takes nothing any more
	After  time.Duration // the wait that the chat asks for; 0: none
}

func (e *Error) Error() string { return fmt.Sprintf("the chat answered %d", e.Status) }

// Shown is the part of an address that people may see: its host and last characters. It
// refuses what is not the address of an incoming webhook.
func Shown(address string) (string, error) {
	_, host, err := serviceOf(address)
	if err != nil {
		return "", err
	}
	return host + " …" + address[len(address)-shown:], nil
}

func serviceOf(address string) (s service, host string, err error) {
	u, err := url.Parse(address)
	if refusal := guard.WebhookURL(address, nil); refusal != nil || err != nil {
		return s, "", cmp.Or(refusal, err)
	}
	host = strings.ToLower(u.Hostname())
	for _, s := range services {
		named := slices.ContainsFunc(s.hosts, func(known string) bool { return strings.HasSuffix("."+host, known) })
		if named && strings.HasPrefix(u.Path, s.path) && len(u.RequestURI()) >= shortest {
			return s, host, nil
		}
	}
	return s, "", errors.New("must be the whole address of an incoming webhook of Slack (hooks.slack.com), " +
		"Discord (discord.com/api/webhooks) or Teams (a workflow, or webhook.office.com): copy it there")
}

// Poster posts messages. Many goroutines may use it.
type Poster struct{ Client *http.Client }

// New makes a Poster.
func New() *Poster { return &Poster{guard.Client(nil, postTime)} }

// Post posts at least one line to the address. rest is a page of ours with the lines that
// find no room. *Error: the chat did not take them.
func (p *Poster) Post(ctx context.Context, address string, lines []Line, rest string) error {
	s, _, err := serviceOf(address)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(s.message(lines, rest)))
	if err != nil {
		return guard.Unquoted(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"humanqa"}}
	resp, err := p.Client.Do(req)
	if err != nil {
		return fmt.Errorf("reach the chat: %w", guard.Unquoted(err))
	}
	_ = resp.Body.Close() // the status has decided
	code := resp.StatusCode
	if code >= 200 && code <= 299 {
		return nil
	}
	return &Error{
		Status: code, Gone: code == http.StatusNotFound || code == http.StatusGone,
		After: min(backoff.RetryAfter(resp.Header.Get("Retry-After"), time.Now()), longest),
	}
}
