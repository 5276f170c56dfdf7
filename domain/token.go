package domain

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// The prefixes of the tokens we hand out. They tell a person, and a secret
// scanner, what they have found.
const (
	LiveKeyPrefix    = "qa_live_"
	SandboxKeyPrefix = "qa_test_"
	CheckerKeyPrefix = "qc_"
	HookTokenPrefix  = "qh_"
)

// NewToken makes a token: the prefix and 256 random bits, base64url. It is
// shown once and never stored; HashToken of it is.
func NewToken(prefix string) string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashToken is what is stored of a token: lower-case hex SHA-256. A plain hash
// is enough because the token has 256 bits of entropy.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TokenHint is the part of a token that may be shown again, to recognise it
// by.
func TokenHint(token string) string {
	const shown = 12
	if len(token) <= shown {
		return token
	}
	return token[:shown]
}
