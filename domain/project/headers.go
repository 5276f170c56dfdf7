package project

import (
	"fmt"
	"maps"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"humanqa/domain"
)

// Limits of the client's own headers, in bytes where they are lengths. Servers commonly take
// 8 KiB of headers, and the service sends some itself.
const (
	MaxHeaders      = 10
	MaxHeaderName   = 64
	MaxHeaderValue  = 2048
	MaxHeadersTotal = 4096 // of a change
)

// OwnHeader is a header that the client adds to the deliveries of its project. Sealed is the
// value's ciphertext (vault, bound to the project's stream). Fingerprint is the vault's keyed
// hash, which recognises the same value without opening it.
type OwnHeader struct {
	Name        string `json:"name"` // in its canonical spelling
	Sealed      string `json:"sealed"`
	Fingerprint string `json:"fingerprint"`
}

// Headers changes the client's own headers of deliveries. Values holds the new values by
// name; nil removes a header. Clear removes all others. The values are secrets.
type Headers struct {
	Clear  bool
	Values map[string]*string
}

// HeadersChange adds, replaces and removes own headers by their names.
type HeadersChange struct {
	Clear  bool // removes all earlier headers first
	Set    []OwnHeader
	Remove []string
}

var headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)

// reserved are the headers that the service, HTTP or a proxy sets: all that begin so.
var reserved = []string{"Content-", "Proxy-", "Sec-", "Webhook-", "X-Service-"}

var reservedNames = []string{
	"Accept-Encoding", "Connection", "Date", "Expect", "Forwarded", "Host", "Http2-Settings", "Keep-Alive", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "User-Agent", "Via",
}

// HeaderName is the canonical spelling of a header's name; wrong says why the name cannot be
// an own header's, and is empty otherwise.
func HeaderName(name string) (canonical, wrong string) {
	canonical = textproto.CanonicalMIMEHeaderKey(name)
	begins := func(prefix string) bool { return strings.HasPrefix(canonical, prefix) }
	switch {
	case len(name) > MaxHeaderName || !headerName.MatchString(name):
		return "", fmt.Sprintf("must be a header's name: letters, digits and -, at most %d", MaxHeaderName)
	case slices.Contains(reservedNames, canonical) || slices.ContainsFunc(reserved, begins):
		return "", "is set by the service or by HTTP itself; choose another name, such as Authorization or X-Environment"
	}
	return canonical, ""
}

// HeaderValue says why a text cannot be an own header's value; empty: it can. It never
// repeats the text, which is a secret.
func HeaderValue(value string) (wrong string) {
	switch printable := func(c rune) bool { return c >= ' ' && c <= '~' }; {
	case value == "":
		return "must not be empty; null removes the header"
	case len(value) > MaxHeaderValue:
		return fmt.Sprintf("must be at most %d characters", MaxHeaderValue)
	case strings.ContainsFunc(value, func(c rune) bool { return !printable(c) }):
		return "must be printable ASCII characters, without line breaks"
	case strings.TrimSpace(value) != value:
		return "must not begin or end with a blank"
	}
	return ""
}

// CheckHeaders finds the errors in a change of own headers, by name; a nil value removes
// the header.
func CheckHeaders(change map[string]*string) (wrong domain.Wrong) {
	const path = "webhookHeaders"
	if len(change) > 2*MaxHeaders {
		wrong.Add(path, "must have at most %d names", 2*MaxHeaders)
		return wrong
	}
	total, spelled := 0, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(change)) {
		at := path + "." + name
		canonical, problem := HeaderName(name)
		switch value := change[name]; {
		case len(name) > MaxHeaderName:
			wrong.Add(path, "has a name that %s", problem)
			continue
		case problem != "":
			wrong.Add(at, "%s", problem)
			continue
		case spelled[canonical]:
			wrong.Add(at, "stands there twice, in two spellings")
		case value == nil:
		case HeaderValue(*value) != "":
			wrong.Add(at, "%s", HeaderValue(*value))
		default:
			total += len(canonical) + len(*value)
		}
		spelled[canonical] = true
	}
	wrong.AddIf(total > MaxHeadersTotal, path, "must have at most %d characters in all", MaxHeadersTotal)
	return wrong
}

// WebhookOrigin is the scheme, host and port of a webhook's URL. Own headers are bound to it.
func WebhookOrigin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + strings.TrimSuffix(u.Host, ":443"))
}

// SentHeaders are the own headers that deliveries carry. The values are for the origin
// that the webhook had when they were set: another origin never gets them.
func (s State) SentHeaders() []OwnHeader {
	if s.WebhookURL == "" || WebhookOrigin(s.WebhookURL) != s.HeadersOrigin {
		return nil
	}
	return s.Headers
}

// HeaderNames are the names of headers, in their order; nil where there are none.
func HeaderNames(headers []OwnHeader) (names []string) {
	for _, h := range headers {
		names = append(names, h.Name)
	}
	return names
}

// changeHeaders decides about the own headers after the webhook's own changes. Without a
// URL it ignores the change. It does not keep headers of another origin.
func changeHeaders(s State, c UpdateCommand, after State) ([]domain.Event, error) {
	if c.Headers == nil || after.WebhookURL == "" {
		return nil, nil
	}
	next := []OwnHeader{}
	if !c.Headers.Clear {
		next = append(next, after.SentHeaders()...)
	}
	for _, h := range c.Headers.Set {
		if at := slices.IndexFunc(next, func(old OwnHeader) bool { return old.Name == h.Name }); at < 0 {
			next = append(next, h)
		} else if next[at].Fingerprint != h.Fingerprint {
			next[at] = h
		}
	}
	next = slices.DeleteFunc(next, func(h OwnHeader) bool { return slices.Contains(c.Headers.Remove, h.Name) })
	if len(next) > MaxHeaders {
		return nil, domain.InvalidAt("webhookHeaders", "would be %d headers; at most %d are possible", len(next), MaxHeaders)
	}
	origin := WebhookOrigin(after.WebhookURL)
	if slices.Equal(next, s.Headers) && (len(next) == 0 || origin == s.HeadersOrigin) {
		return nil, nil
	}
	return []domain.Event{&WebhookHeadersSet{Headers: next, Origin: origin, At: c.At, UserID: c.UserID, KeyID: c.KeyID}}, nil
}
