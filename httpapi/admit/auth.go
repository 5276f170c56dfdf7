package admit

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/httpapi/wire"
	"humanqa/projections"
	"humanqa/projections/access"
	"humanqa/projections/projects"
)

// maxToken bounds the tokens that are hashed and looked up; ours have 51 characters.
const maxToken = 256

// Gate finds the caller of a request and counts it against the rate limit: the first
// checks of every request.
type Gate struct {
	keys   *access.Reads
	hooks  *projects.Reads // finds a project by its deploy hook's token
	Limits *limiter
	now    func() time.Time
}

func NewGate(reads *projections.Reads, limits *limiter, now func() time.Time) *Gate {
	return &Gate{keys: reads.Access, hooks: reads.Projects, Limits: limits, now: now}
}

// Authenticate is the 401 of the order of checks, and the 403 of a suspended account. API
// keys are only valid outside /v1/checker, checker keys only inside. A deploy hook's
// credential is its path. An API key's request is counted by the look-up itself: then the
// allowance is not nil. The caller of a suspended account comes with its refusal.
func (g *Gate) Authenticate(ctx context.Context, h http.Header, m wire.Match) (wire.Caller, *Allowance, error) {
	switch {
	case m.Audience == wire.Public:
		return wire.Caller{}, nil, nil
	case m.Audience == wire.Hooks && m.Route == nil: // 404 or 405 for every caller
		return wire.Caller{}, nil, nil
	case m.Audience == wire.Hooks:
		c, err := g.hookOf(ctx, m.Vars["token"])
		return c, nil, err
	}
	token, err := Bearer(h)
	if err != nil {
		return wire.Caller{}, nil, err
	}
	if m.Audience == wire.Checkers {
		c, err := g.checkerOf(ctx, token)
		return c, nil, err
	}
	return g.clientOf(ctx, token)
}

// MayWrite refuses a write with a read-only key.
func MayWrite(r *wire.Request) error {
	if r.Route != nil && r.Route.Write && r.Audience == wire.Clients && r.Caller.Scope != account.ScopeFull {
		return domain.Forbidden("the API key is read-only").WithHint("use a key with full scope")
	}
	return nil
}

// clientOf looks an API key up and counts the request, at once.
func (g *Gate) clientOf(ctx context.Context, token string) (wire.Caller, *Allowance, error) {
	counted, err := g.Limits.countKeyRequest(ctx, domain.HashToken(token), g.now())
	if err != nil {
		return wire.Caller{}, nil, err
	}
	if err := counted.Refused; err != nil && !errors.Is(err, ErrSuspended) {
		return wire.Caller{}, nil, err
	}
	if counted.Allowance.Admitted {
		if err := g.Limits.noteUse(ctx, counted.Key, g.now()); err != nil {
			return wire.Caller{}, nil, err
		}
	}
	return wire.Caller{
		Actor: "key:" + counted.KeyID, AccountID: counted.AccountID,
		Scope: counted.Scope, ProjectID: counted.ProjectID, Sandbox: counted.Sandbox,
	}, &counted.Allowance, counted.Refused
}

// mayCall is the 401 and the 403 of an API key.
func mayCall(key access.Key, found bool, now time.Time) error {
	switch {
	case !found || key.Revoked || key.ExpiresAt != nil && !now.Before(*key.ExpiresAt):
		return errBadKey
	case key.Suspended:
		return ErrSuspended
	}
	return nil
}

func (g *Gate) checkerOf(ctx context.Context, token string) (wire.Caller, error) {
	checker, found, err := g.keys.Checker(ctx, domain.HashToken(token))
	switch {
	case err != nil:
		return wire.Caller{}, err
	case !found:
		return wire.Caller{}, errBadKey
	}
	return wire.Caller{Actor: "checker:" + checker.ID, CheckerID: checker.ID}, nil
}

// hookOf is the project whose deploy hook has the token. Its caller is bound to
// that project and may do nothing but what the hook does.
func (g *Gate) hookOf(ctx context.Context, token string) (wire.Caller, error) {
	if len(token) > maxToken {
		return wire.Caller{}, errNoHook
	}
	target, found, err := g.hooks.ByHook(ctx, domain.HashToken(token))
	switch {
	case err != nil:
		return wire.Caller{}, err
	case !found:
		return wire.Caller{}, errNoHook
	case target.Suspended:
		err = ErrSuspended
	}
	return wire.Caller{
		Actor: "hook:" + target.ProjectID, AccountID: target.AccountID,
		Scope: account.ScopeFull, ProjectID: target.ProjectID, Sandbox: target.Sandbox,
	}, err
}

// NoCredential says that err refuses a missing or invalid credential.
func NoCredential(err error) bool {
	return domain.IsKind(err, domain.KindUnauthorized) || errors.Is(err, errNoHook)
}

// Bearer reads the credential (RFC 6750; the scheme's case does not matter).
func Bearer(h http.Header) (string, error) {
	value := h.Get("Authorization")
	if value == "" {
		return "", domain.Unauthorized("the request carries no API key").
			WithHint("send the header Authorization: Bearer <API_KEY>")
	}
	scheme, token, _ := strings.Cut(value, " ")
	token = strings.TrimSpace(token)
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return "", errNoBearer
	case token == "" || len(token) > maxToken:
		return "", errBadKey
	}
	return token, nil
}

var (
	errBadKey = domain.Unauthorized("the key is invalid, expired or revoked").
			WithHint("check the key, or create a new one in the account dashboard")
	errNoBearer = domain.Unauthorized("the Authorization header is not of the scheme Bearer").
			WithHint("write Bearer and a blank before the key: Authorization: Bearer <API_KEY>")
	errNoHook = domain.NotFound("deploy hook").
			WithHint("use the deployHookUrl that the project's creation answered")
	ErrSuspended = &domain.Error{
		Kind: domain.KindSuspended, Code: domain.CodeAccountSuspended,
		Message: "the account is suspended", Hint: "contact support to have it reinstated",
	}
)

// keyLookupTime bounds the second look-up of a key, for a request that still runs.
const keyLookupTime = 10 * time.Second

// StillMay looks at the key again: it may have been revoked or have expired
// since, or its account may have been suspended.
func (g *Gate) StillMay(ctx context.Context, r *wire.Request) error {
	ctx, cancel := context.WithTimeout(ctx, keyLookupTime)
	defer cancel()
	token, err := Bearer(r.Header)
	if err != nil {
		return err
	}
	key, found, err := g.keys.Key(ctx, domain.HashToken(token))
	if err != nil {
		return err
	}
	return mayCall(key, found, g.now())
}
