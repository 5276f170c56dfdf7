package send

import (
	"time"

	"humanqa/internal/signature"
)

// secrets sign one attempt.
type secrets struct {
	present    []byte
	previous   []byte // nil outside a rotation's overlap
	byPrevious bool   // X-Service-Signature is the previous secret's
}

func (s secrets) serviceSecret() []byte {
	if s.byPrevious {
		return s.previous
	}
	return s.present
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
