package domain

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// The prefixes of our tokens. They tell a person, or a secret scanner, the kind of a
// token.
const (
	LiveKeyPrefix    = "qa_live_"
	SandboxKeyPrefix = "qa_test_"
	CheckerKeyPrefix = "qc_"
	HookTokenPrefix  = "qh_"
)

// NewToken makes a token: the prefix and 256 random bits, base64url. It is shown once and
// never stored. Only its HashToken is stored.
func NewToken(prefix string) string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashToken is the stored form of a token: lower-case hex SHA-256. A plain hash is enough
// because the token has 256 bits of entropy.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TokenHint is the part of a token that may be shown again to recognise it.
func TokenHint(token string) string {
	const shown = 12
	if len(token) <= shown {
		return token
	}
	return token[:shown]
}
