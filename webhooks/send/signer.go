package send

import (
	"net/http"
	"strings"
	"time"

	"humanqa/internal/signature"
)

// secrets are the secrets of one attempt: the signing secrets, and the client's own
// headers.
type secrets struct {
	present    []byte
	previous   []byte // nil outside a rotation's overlap
	byPrevious bool   // X-Service-Signature is made with the previous secret
	headers    []signature.Header
}

// shortestSecret is the least length at which a part of a header's value counts as a
// secret: "Bearer" alone does not.
const shortestSecret = 8

// conceal removes the values of own headers from a server's answer, which the log of
// attempts keeps: some servers echo the request. The text may end within a value.
func (s secrets) conceal(text string) string {
	for _, h := range s.headers {
		for _, part := range append([]string{h.Value}, strings.Fields(h.Value)...) {
			if len(part) < shortestSecret {
				continue
			}
			text = strings.ReplaceAll(text, part, concealed)
			for n := len(part) - 1; n >= shortestSecret; n-- {
				if rest, cut := strings.CutSuffix(text, part[:n]); cut {
					text = rest + concealed
					break
				}
			}
		}
	}
	return text
}

const concealed = "[sealed]"

func (s secrets) serviceSecret() []byte {
	if s.byPrevious {
		return s.previous
	}
	return s.present
}

// blameSecret names the secret that a refused attempt was signed with, while there are two.
func (s secrets) blameSecret(status int) string {
	switch {
	case s.previous == nil, status != http.StatusUnauthorized && status != http.StatusForbidden:
		return ""
	case s.byPrevious:
		return "; X-Service-Signature was made with the previous secret"
	}
	return "; X-Service-Signature was made with the new secret"
}

// sign signs one attempt. In a rotation's overlap webhook-signature carries the
// signatures of both secrets; X-Service-Signature has room for one.
func sign(id string, at time.Time, body []byte, by secrets) signature.Pair {
	s := signature.Pair{Service: signature.Of(by.serviceSecret(), body),
		Standard: signature.Standard(by.present, id, at, body)}
	if by.previous != nil {
		s.Standard += " " + signature.Standard(by.previous, id, at, body)
	}
	return s
}
