package mcptools

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// confirmation names the input request about a price.
	confirmation = "price"
	// confirmTime is how long a price that was shown may be accepted.
	confirmTime = 15 * time.Minute
)

// confirm holds a purchase back that costs more than the caller allows. A client that can
// ask its person is asked for input; any other is refused with words. It gives nil and no
// error once the purchase may go on. Without a limit no price is asked for. Zero is a limit.
//
// The state of the question is signed, so that a person accepts this price of this very
// call, and no other. The key of the signature is the caller's API key: it is as secret as
// what it protects, and every process of the service has it when it is used.
func (s *server) confirm(
	ctx context.Context, req *sdk.CallToolRequest, limit *float64, price func() (float64, error),
) (*sdk.CallToolResult, error) {
	if limit == nil {
		return nil, nil
	}
	most := *limit
	if most < 0 {
		return nil, fmt.Errorf("maxCredits is %g: it must be 0 or more. Nothing was charged", most)
	}
	credits, err := price()
	if err != nil || credits <= most {
		return nil, err
	}
	if answer, ok := req.Params.InputResponses[confirmation].(*sdk.ElicitResult); ok {
		switch {
		case !verifyState(ctx, req, req.Params.RequestState, credits):
			return nil, fmt.Errorf("the price is %g credits now, or the question is too old: call again without the old state", credits)
		case answer.Action == "accept":
			return nil, nil
		}
		return nil, fmt.Errorf("the price of %g credits was declined. Nothing was charged", credits)
	}
	capabilities := req.ClientCapabilities()
	if capabilities == nil || capabilities.Elicitation == nil {
		return nil, fmt.Errorf("the test costs %g credits, more than maxCredits %g. Nothing was charged: raise maxCredits to buy it", credits, most)
	}
	return &sdk.CallToolResult{
		InputRequests: sdk.InputRequestMap{confirmation: &sdk.ElicitParams{
			Mode:            "form",
			Message:         fmt.Sprintf("The human test costs %g credits, more than the limit of %g. Buy it?", credits, most),
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}},
		}},
		RequestState: signState(ctx, req, credits, time.Now()),
	}, nil
}

// signState binds a price to the call that was asked and to the time of the question.
func signState(ctx context.Context, req *sdk.CallToolRequest, credits float64, at time.Time) string {
	claims := fmt.Sprintf("%d.%g", at.Unix(), credits)
	return claims + "." + signatureOf(ctx, req, claims)
}

func verifyState(ctx context.Context, req *sdk.CallToolRequest, state string, credits float64) bool {
	cut := strings.LastIndexByte(state, '.')
	if cut < 0 || !hmac.Equal([]byte(state[cut+1:]), []byte(signatureOf(ctx, req, state[:cut]))) {
		return false
	}
	at, shown, _ := strings.Cut(state[:cut], ".")
	seconds, err := strconv.ParseInt(at, 10, 64)
	return err == nil && time.Since(time.Unix(seconds, 0)) < confirmTime && shown == fmt.Sprintf("%g", credits)
}

func signatureOf(ctx context.Context, req *sdk.CallToolRequest, claims string) string {
	header, _ := ctx.Value(headerKey{}).(http.Header)
	mac := hmac.New(sha256.New, []byte("mcp price\n"+header.Get("Authorization")))
	arguments, _ := json.Marshal(req.Params.Arguments)                        // it came as JSON
	_, _ = fmt.Fprintf(mac, "%s\n%s\n%s", claims, req.Params.Name, arguments) // a hash never fails
	return hex.EncodeToString(mac.Sum(nil))
}
