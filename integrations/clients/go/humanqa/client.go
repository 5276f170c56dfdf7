// Package humanqa is the client's side of the service's /v1. Its requests survive a lost
// network, and its errors have their envelope. It waits for tests, walks lists and verifies
// webhooks. The types of bodies and answers are generated from the API's document.
package humanqa

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"humanqa/internal/backoff"
)

const (
	// callTime bounds one attempt; the longest answer that the service holds back takes
	// 25 seconds.
	callTime = 45 * time.Second
	// answerLimit bounds an answer: a batch report of twenty jobs is far below it.
	answerLimit = 64 << 20
	firstPause  = 500 * time.Millisecond
	longestWait = 15 * time.Second
)

// Client calls one service with one key.
type Client struct {
	base  string
	key   string
	http  *http.Client
	agent string
}

// New makes a client of the service at base, such as https://qa.example.com. A key is
// never sent in the clear to another machine. agent names the caller, as in hqa/1.2.
func New(base, key, agent string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, fmt.Errorf("%q is no service's URL, which is like https://qa.example.com", base)
	}
	if u.Scheme == "http" && key != "" && !onLoopback(u.Hostname()) {
		return nil, fmt.Errorf("the key would go to %s in the clear: use an https:// URL", u.Host)
	}
	return &Client{
		base: strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"), key: key, agent: agent,
		http: &http.Client{CheckRedirect: stay},
	}, nil
}

// Within makes a client without a key of its own: each call has its caller's in its header.
// It is for a service that calls itself by a transport.
func Within(base string, by http.RoundTripper, agent string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), agent: agent, http: &http.Client{Transport: by, CheckRedirect: stay}}
}

// stay follows no redirect, which would carry the key to an address that the user did not
// name.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func onLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Base is the service's URL, without a slash at its end.
func (c *Client) Base() string { return c.base }

// Sandbox says that the key is one of a sandbox: nothing that it does reaches people.
func (c *Client) Sandbox() bool { return strings.HasPrefix(c.key, "qa_test_") }

// Error is a refusal of the service: its envelope and its status.
type Error struct {
	Status    int            `json:"status"`
	Code      string         `json:"code"`
	Message   string         `json:"error"`
	Hint      string         `json:"hint,omitempty"`
	RequestID string         `json:"requestId"`
	Details   []ErrorDetail  `json:"details,omitempty"`
	After     time.Duration  `json:"-"` // of Retry-After; 0: the service named none
	Extras    map[string]any `json:"-"`
}

func (e *Error) Error() string {
	line := e.Message
	for _, d := range e.Details {
		if strings.HasPrefix(e.Message, d.Path+": ") { // the first one is the message, as a rule
			continue
		}
		line += fmt.Sprintf("; %s %s", d.Path, d.Message)
	}
	if short, ok := e.Extras["creditsShort"].(float64); ok && short > 0 {
		line += fmt.Sprintf("; %g credits are missing, nothing was charged", short)
	}
	if e.Hint != "" {
		line += ": " + e.Hint
	}
	return line
}

// Refused says that the service refused the call with the status.
func Refused(err error, status int) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && refused.Status == status
}

// Passing says that the same request may succeed later: the network, a restart, a
// limit, or an answer that is still being made.
func Passing(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	if !ok {
		return errors.Is(err, ErrNetwork)
	}
	switch refused.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case http.StatusConflict: // an earlier attempt under the same key is being answered
		return refused.After > 0
	}
	return refused.Status >= http.StatusInternalServerError
}

// Pause is how long to wait before the n-th repeat, from 1.
func Pause(err error, n int) time.Duration {
	if refused, ok := errors.AsType[*Error](err); ok && refused.After > 0 {
		return min(refused.After, time.Minute)
	}
	return backoff.Jitter(backoff.Delay(n, firstPause, longestWait))
}

// ErrNetwork says that there was no answer, or no whole one.
var ErrNetwork = errors.New("the service cannot be reached")

// Call is one request.
type Call struct {
	Method string
	Path   string            // from /v1 on, with its query
	Body   any               // nil: none
	Key    string            // Idempotency-Key, such as NewKey: the call has one effect, however often it is sent
	Safe   bool              // a repeat has no further effect, although it is no GET
	Accept string            // another format than JSON
	ETag   string            // of the answer that the caller has
	Header map[string]string // wins over all that the client sets
}

// NewKey is an Idempotency-Key for one call and its repeats.
func NewKey() string { return rand.Text() }

// Value is the content of an optional field, or the zero value.
func Value[T any](field *T) (v T) {
	if field != nil {
		v = *field
	}
	return v
}

// Answer is a complete answer below 400.
type Answer struct {
	Status   int
	ETag     string
	Replayed bool // an earlier request under the same Idempotency-Key got it first
	Raw      []byte
}

// Once makes the call once; out is filled from a JSON answer unless it is nil.
func (c *Client) Once(ctx context.Context, call Call, out any) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	res, err := c.Open(ctx, call) //nolint:bodyclose // whole closes it
	if err != nil {
		return Answer{}, err
	}
	raw, err := whole(res)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{
		Status: res.StatusCode, ETag: res.Header.Get("ETag"), Raw: raw, Replayed: res.Header.Get("Idempotent-Replayed") == "true",
	}
	if out == nil || res.StatusCode == http.StatusNotModified || len(raw) == 0 {
		return a, nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return a, fmt.Errorf("%s did not answer as the service does: check its URL", c.base)
	}
	return a, nil
}

// Do makes the call until it is answered. A call that writes is repeated only if it is safe
// or has an Idempotency-Key, since the first attempt may have had its effect.
func (c *Client) Do(ctx context.Context, call Call, out any) (Answer, error) {
	repeats := call.Method == http.MethodGet || call.Key != "" || call.Safe
	began := time.Now()
	for n := 1; ; n++ {
		a, err := c.Once(ctx, call, out)
		if err == nil || !repeats || !Passing(err) || time.Since(began) > time.Minute {
			return a, err
		}
		if backoff.Wait(ctx, Pause(err, n)) != nil {
			return a, err
		}
	}
}

// Get reads a path into out.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	_, err := c.Do(ctx, Call{Method: http.MethodGet, Path: path}, out)
	return err
}

// Open makes the call once, and leaves the body of the answer to its caller.
func (c *Client) Open(ctx context.Context, call Call) (*http.Response, error) {
	res, err := c.send(ctx, call)
	if err != nil || res.StatusCode < 300 || res.StatusCode == http.StatusNotModified {
		return res, err
	}
	raw, err := whole(res)
	if err != nil {
		return nil, err
	}
	return nil, refusalOf(res, raw)
}

// whole reads an answer to its end.
func whole(res *http.Response) ([]byte, error) {
	defer func() { _ = res.Body.Close() }() // read to its end, or given up
	raw, err := io.ReadAll(io.LimitReader(res.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNetwork, err)
	}
	return raw, nil
}

func (c *Client) send(ctx context.Context, call Call) (*http.Response, error) {
	var body io.Reader
	if call.Body != nil {
		raw, err := json.Marshal(call.Body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, call.Method, c.base+call.Path, body)
	if err != nil {
		return nil, err
	}
	set := func(name, value string) {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	set("User-Agent", c.agent)
	set("Accept", call.Accept)
	set("Idempotency-Key", call.Key)
	set("If-None-Match", call.ETag)
	if body != nil {
		set("Content-Type", "application/json")
	}
	if c.key != "" {
		set("Authorization", "Bearer "+c.key)
	}
	for name, value := range call.Header {
		set(name, value)
	}
	res, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		if lost, ok := errors.AsType[*url.Error](err); ok {
			err = lost.Err // without the method and the URL, which the caller knows
		}
		return nil, fmt.Errorf("%w at %s: %w", ErrNetwork, c.base, err)
	}
	return res, nil
}

func refusalOf(res *http.Response, raw []byte) *Error {
	e := &Error{Status: res.StatusCode}
	if json.Unmarshal(raw, e) != nil || e.Code == "" { // a proxy's page, say
		e.Code, e.Message = "HTTP_"+strconv.Itoa(res.StatusCode), "the answer was "+res.Status
		switch {
		case res.StatusCode < http.StatusBadRequest:
			e.Message = "the service moved to " + res.Header.Get("Location")
		case res.StatusCode == http.StatusRequestEntityTooLarge && res.Request != nil:
			e.Message = fmt.Sprintf("a proxy in front of the service refused a body of %d bytes (%s)", res.Request.ContentLength, res.Status)
			e.Hint = "its operator raises the limit of the proxy"
		}
	}
	e.Status = res.StatusCode
	_ = json.Unmarshal(raw, &e.Extras) // a body that is no object has no extras
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.After = time.Duration(seconds) * time.Second
	}
	return e
}
