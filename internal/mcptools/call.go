package mcptools

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/fence"
)

// headerKey carries the header of an HTTP request to the tool that it calls.
type headerKey struct{}

// listenMethod subscribes to changes, and there are none here: tasks are polled (decisions,
// "Waiting"). The library would acknowledge a stream of nothing.
const listenMethod = "subscriptions/listen"

// withHeader is a middleware that keeps the request's header for the tools: custom methods
// are not given it. A panic ends the request alone: tools run on goroutines of the library,
// where it would end the process.
func withHeader(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if found := recover(); found != nil {
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("panic: %v", found)}
			}
		}()
		if method == listenMethod {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not supported: poll with tasks/get"}
		}
		if extra := req.GetExtra(); extra != nil && extra.Header != nil {
			ctx = context.WithValue(ctx, headerKey{}, extra.Header)
		}
		return next(ctx, method, req)
	}
}

// do sends a request once, with the caller's key, and reads its JSON answer into out. A
// refusal is an *humanqa.Error.
func (s *server) do(ctx context.Context, call humanqa.Call, out any) (humanqa.Answer, error) {
	if came, ok := ctx.Value(headerKey{}).(http.Header); ok {
		call.Header = map[string]string{}
		for _, name := range []string{"Authorization", "X-Request-Id", "Traceparent"} {
			if value := came.Get(name); value != "" {
				call.Header[name] = value
			}
		}
	}
	call.Accept = "application/json"
	answer, err := s.api.Once(ctx, call, out)
	var refused *humanqa.Error
	switch {
	case errors.As(err, &refused):
		refused.Message += " (" + refused.Code + ")" // a model tells refusals apart by it
	case err != nil && ctx.Err() == nil:
		err = fmt.Errorf("%w. Try again; nothing is paid twice under one idempotencyKey", err)
	}
	return answer, err
}

// byChecker fences what a checker, or a page through a checker, wrote.
func byChecker(text string) string { return fence.Text("checker", text) }
