package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/projections/access"
)

// maxToken bounds what is hashed and looked up; our tokens have 51 characters.
const maxToken = 256

// caller is who stands behind a request, once its credential was accepted.
type caller struct {
	actor     string // key:<id>, checker:<id>
	accountID string // of an API key
	scope     account.Scope
	projectID string // the one project an API key is bound to, or empty
	checkerID string // of a checker key
	sandbox   bool   // the account is one
	quota     *quota // the request is counted already: an API key's
}

// owner is whose Idempotency-Keys the caller uses, and whose data key seals
// what is stored under them: the account's, or a checker's own.
func (c caller) owner() string {
	if c.accountID == "" {
		return "checker:" + c.checkerID
	}
	return c.accountID
}

// authenticate is the 401, and the 403 of a suspended account, of the order of
// checks. API keys only work
// outside /v1/checker, checker keys only inside: elsewhere they are no
// credential at all. A deploy hook's credential is its path.
func (a *API) authenticate(ctx context.Context, h http.Header, m match) (caller, error) {
	switch {
	case m.audience == public:
		return caller{}, nil
	case m.audience == hooks && m.route == nil: // 404 or 405, whoever asks
		return caller{}, nil
	case m.audience == hooks:
		return a.hook(ctx, m.vars["token"])
	}
	token, err := bearer(h)
	if err != nil {
		return caller{}, err
	}
	if m.audience == checkers {
		return a.checker(ctx, token)
	}
	return a.client(ctx, token)
}

// mayWrite refuses a read-only key what writes.
func (r *request) mayWrite() error {
	if r.route != nil && r.route.write && r.audience == clients && r.caller.scope != account.ScopeFull {
		return domain.Forbidden("the API key is read-only").WithHint("use a key with full scope")
	}
	return nil
}

// client looks an API key up and counts the request, at once.
func (a *API) client(ctx context.Context, token string) (caller, error) {
	counted, err := a.limits.takeAsKey(ctx, domain.HashToken(token), a.now())
	if err != nil {
		return caller{}, err
	}
	if err := counted.refused; err != nil {
		return caller{}, err
	}
	return caller{
		actor: "key:" + counted.KeyID, accountID: counted.AccountID,
		scope: counted.Scope, projectID: counted.ProjectID, sandbox: counted.Sandbox, quota: &counted.quota,
	}, nil
}

// mayCall is the 401 and the 403 of an API key.
func mayCall(key access.Key, found bool, now time.Time) error {
	switch {
	case !found || key.Revoked || key.ExpiresAt != nil && !now.Before(*key.ExpiresAt):
		return errBadKey
	case key.Suspended:
		return errSuspended
	}
	return nil
}

func (a *API) checker(ctx context.Context, token string) (caller, error) {
	checker, found, err := a.reads.Access.Checker(ctx, domain.HashToken(token))
	switch {
	case err != nil:
		return caller{}, err
	case !found:
		return caller{}, errBadKey
	}
	return caller{actor: "checker:" + checker.ID, checkerID: checker.ID}, nil
}

// hook is the project whose deploy hook has the token. Its caller is bound to
// that project and may do nothing but what the hook does.
func (a *API) hook(ctx context.Context, token string) (caller, error) {
	if len(token) > maxToken {
		return caller{}, errNoHook
	}
	target, found, err := a.reads.Projects.ByHook(ctx, domain.HashToken(token))
	switch {
	case err != nil:
		return caller{}, err
	case !found:
		return caller{}, errNoHook
	case target.Suspended:
		return caller{}, errSuspended
	}
	return caller{
		actor: "hook:" + target.ProjectID, accountID: target.AccountID,
		scope: account.ScopeFull, projectID: target.ProjectID, sandbox: target.Sandbox,
	}, nil
}

// noCredential says that err refuses what was sent as a credential, whoever
// sent it.
func noCredential(err error) bool {
	return domain.IsKind(err, domain.KindUnauthorized) || errors.Is(err, errNoHook)
}

// bearer reads the credential (RFC 6750; the scheme's case does not matter).
func bearer(h http.Header) (string, error) {
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
	errSuspended = &domain.Error{
		Kind: domain.KindSuspended, Code: domain.CodeAccountSuspended,
		Message: "the account is suspended", Hint: "contact support to have it reinstated",
	}
	errOtherProject = domain.Forbidden("the API key is bound to another project").
			WithHint("use a key of that project, or one without a project")
)

// mayUseProject refuses a project-bound key another project of its account.
// A project of another account is not found, as for everybody.
func (a *API) mayUseProject(ctx context.Context, c caller, projectID string) error {
	if c.projectID == "" || c.projectID == projectID {
		return nil
	}
	if _, err := a.reads.Projects.Get(ctx, c.accountID, projectID); err != nil {
		return err
	}
	return errOtherProject
}

// narrow gives a list that names no project the key's own one. none says that
// the list is empty: as a filter, another account's project matches nothing.
func (a *API) narrow(r *request, projectID *string) (none bool, err error) {
	if *projectID == "" {
		*projectID = r.caller.projectID
	}
	err = a.mayUseProject(r.Context(), r.caller, *projectID)
	if domain.IsKind(err, domain.KindNotFound) {
		return true, nil
	}
	return false, err
}
