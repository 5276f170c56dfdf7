package mcp

import (
	"context"
	"errors"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/httpapi/wire"
)

const (
	// maxAnswer bounds one answer of the API, in bytes. The largest report has half as many.
	maxAnswer = 8 << 20
	// answersOfKey and answersOfNode bound the bytes of answers under way, of one key and
	// of all. A call takes some six times its answer in memory, until its client has read it.
	answersOfKey  = maxAnswer
	answersOfNode = 8 * answersOfKey
)

// underWay is the share of one request in the bytes of answers under way. A request calls the API
// several times, one answer after the other, so its share is that of the largest.
type underWay struct {
	quota *wire.Quota
	key   string

	mu    sync.Mutex
	share int64
	ended bool
}

// underWayKey is the context's and the token's mark of the share.
type underWayKey struct{}

const underWayExtra = "answers"

// errNoRequest refuses an answer that no client waits for.
var errNoRequest = errors.New("the request has ended")

// grow makes the share at least n bytes. It waits for others to end, a few seconds at most.
func (u *underWay) grow(ctx context.Context, n int64) error {
	if u == nil {
		return errNoRequest
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.ended:
		return errNoRequest
	case n <= u.share:
		return nil
	}
	if err := u.quota.Acquire(ctx, u.key, n-u.share); err != nil {
		return err
	}
	u.share = n
	return nil
}

// end gives the share back: the client has its answer, or is gone.
func (u *underWay) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	if u.share > 0 {
		u.quota.Release(u.key, u.share)
	}
}

// withShare is a middleware that gives a tool the share of its request. The context of a
// session is not that of the request; the token is.
func withShare(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
			ctx = context.WithValue(ctx, underWayKey{}, extra.TokenInfo.Extra[underWayExtra])
		}
		return next(ctx, method, req)
	}
}
