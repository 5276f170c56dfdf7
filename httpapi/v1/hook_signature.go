package v1

import (
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
	"humanqa/httpapi/wire"
	"humanqa/internal/signature"
)

// signedByPlatform refuses a call of a deploy hook that lacks the signature which its
// owner asks for. It looks at the raw bytes, before the body is parsed.
func (a *Handlers) signedByPlatform(r *wire.Request) error {
	scheme, secret, err := a.Commands.HookSecret(r.Context(), r.Caller.AccountID, r.Caller.ProjectID)
	if err != nil || scheme == "" {
		return err
	}
	var header string
	var verified error
	switch scheme {
	case project.SignedByGitHub:
		header, verified = signature.GitHubHeader, signature.VerifyGitHub(secret, r.Header, r.Content)
	case project.SignedByVercel:
		header, verified = signature.VercelHeader, signature.VerifyVercel(secret, r.Header, r.Content)
	case project.SignedByNetlify:
		header, verified = signature.NetlifyHeader, signature.VerifyNetlify(secret, r.Header, r.Content)
	case project.SignedByGitLab:
		header, verified = signature.GitLabHeader, signature.VerifyGitLab(secret, r.Header)
	case project.StandardSigned:
		header, verified = signature.StandardHeader, signature.VerifyStandard(secret, r.Header, r.Content, time.Now())
	default:
		return fmt.Errorf("the deploy hook has the unknown scheme %s", scheme)
	}
	const hint = "set the same secret at the platform and on the page Deploy hook of the project"
	switch {
	case verified == nil:
		return nil
	case r.Header.Get(header) == "":
		return domain.Unauthorized("the deploy hook takes signed calls only: the header %s is missing", header).WithHint(hint)
	}
	return domain.Unauthorized("the signature in %s does not match the body, or is too old", header).WithHint(hint)
}
