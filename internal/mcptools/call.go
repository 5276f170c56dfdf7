package mcptools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/internal/fence"
)

// maxAnswer bounds what is read of one answer of the API, in bytes.
const maxAnswer = 16 << 20

// apiError is a refusal of the API, in the words of its envelope.
type apiError struct {
	Status  int    `json:"-"`
	Message string `json:"error"`
	Code    string `json:"code"`
	Hint    string `json:"hint"`
	Details []struct {
		Path    string `json:"path"`
		Message string `json:"message"`
	} `json:"details"`
	CreditsShort float64 `json:"creditsShort"`
}

// Error is what the model reads. A validation's message may quote what the caller sent.
func (e *apiError) Error() string {
	text := fmt.Sprintf("%s (%s)", e.Message, e.Code)
	for _, d := range e.Details {
		text += fmt.Sprintf("; %s %s", d.Path, d.Message)
	}
	if e.CreditsShort > 0 {
		text += fmt.Sprintf("; %g credits are missing, nothing was charged", e.CreditsShort)
	}
	if e.Hint != "" {
		text += ". " + e.Hint
	}
	return text
}

// request is one call of the API.
type request struct {
	method, path string
	idempotency  string // the Idempotency-Key, if any
	body         any
	header       http.Header
}

// headerKey carries the header of an HTTP request to the tool that it calls.
type headerKey struct{}

// withHeader is a middleware that keeps the request's header for the tools: custom methods
// are not given it. A panic ends the request alone: tools run on goroutines of the library,
// where it would end the process.
func withHeader(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer recovered(&err)
		if extra := req.GetExtra(); extra != nil && extra.Header != nil {
			ctx = context.WithValue(ctx, headerKey{}, extra.Header)
		}
		return next(ctx, method, req)
	}
}

// recovered makes an error of a panic.
func recovered(err *error) {
	if found := recover(); found != nil {
		*err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("panic: %v", found)}
	}
}

// do sends a request and reads its JSON answer into out. It gives the answer's header, or
// an *apiError.
func (s *server) do(ctx context.Context, r request, out any) (http.Header, error) {
	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, s.base+r.path, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if came, ok := ctx.Value(headerKey{}).(http.Header); ok {
		for _, name := range []string{"Authorization", "X-Request-Id"} {
			if values := came.Values(name); len(values) > 0 {
				req.Header[name] = values
			}
		}
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.idempotency != "" {
		req.Header.Set("Idempotency-Key", r.idempotency)
	}
	resp, err := s.api.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("the service cannot be reached: %w. Try again; nothing is paid twice under one idempotencyKey", err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the service's answer broke off: %w. Try again", err)
	case len(answer) > maxAnswer:
		return nil, errors.New("the service's answer is too large for a tool: read it by the API")
	case resp.StatusCode >= http.StatusBadRequest:
		refused := &apiError{Status: resp.StatusCode}
		if json.Unmarshal(answer, refused) != nil || refused.Message == "" {
			refused.Message, refused.Code = http.StatusText(resp.StatusCode), fmt.Sprint(resp.StatusCode)
		}
		return nil, refused
	case resp.StatusCode == http.StatusNotModified:
		return resp.Header, nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return nil, fmt.Errorf("the service's answer cannot be read: %w", err)
	}
	return resp.Header, nil
}

// isNotFound says that the API knows no such thing, or not yet.
func isNotFound(err error) bool {
	var refused *apiError
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// clip shortens a text to a number of characters.
func clip(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// byChecker fences what a checker, or a page through a checker, wrote.
func byChecker(text string) string { return fence.Text("checker", text) }
