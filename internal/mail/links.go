package mail

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"
)

// Links makes the links that stand in letters and knows them again. Nothing about them is
// stored.
type Links struct {
	// BaseURL starts them.
	BaseURL string
	// Keys gives the MAC keys of the master keyset (vault.MACKeys).
	Keys func() (primary uint32, keys map[uint32][]byte)
}

// The uses of a link, which keep the MACs of one from being taken for the other's.
const (
	useStop    = "stop"
	useConfirm = "confirm"
)

// Stop is the link that ends all e-mail to the person.
func (l Links) Stop(personID string) string {
	return l.BaseURL + "/mail/stop/" + l.token(useStop, personID, "")
}

// Confirm is the link that proves that letters to the address reach the person; it holds
// for the address that was given at that time.
func (l Links) Confirm(personID, address string, askedAt time.Time) string {
	return l.BaseURL + "/mail/confirm/" + l.token(useConfirm, personID, confirmed(address, askedAt))
}

// Page is a page of ours.
func (l Links) Page(path string) string { return l.BaseURL + path }

func confirmed(address string, askedAt time.Time) string {
	return address + "\n" + askedAt.UTC().Format(time.RFC3339Nano)
}

func (l Links) token(use, personID, about string) string {
	primary, keys := l.Keys()
	return base64.RawURLEncoding.EncodeToString([]byte(personID)) + "." +
		base64.RawURLEncoding.EncodeToString(mac(keys[primary], use, personID, about))
}

// personOf is the person that a token names, without a proof.
func personOf(token string) string {
	name, _, _ := strings.Cut(token, ".")
	id, err := base64.RawURLEncoding.DecodeString(name)
	if err != nil || !utf8.Valid(id) || bytes.IndexByte(id, 0) >= 0 { // a stranger's bytes reach no statement
		return ""
	}
	return string(id)
}

// proves says that the token is ours, under any of the keys.
func (l Links) proves(token, use, personID, about string) bool {
	_, sum, _ := strings.Cut(token, ".")
	got, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil {
		return false
	}
	_, keys := l.Keys()
	for _, key := range keys {
		if hmac.Equal(got, mac(key, use, personID, about)) {
			return true
		}
	}
	return false
}

// mac is under a key of its own: the keyset's keys also prove events.
func mac(key []byte, use, personID, about string) []byte {
	own := hmac.New(sha256.New, key)
	own.Write([]byte("links of e-mail"))
	sum := hmac.New(sha256.New, own.Sum(nil))
	sum.Write([]byte(use + "\n" + personID + "\n" + about))
	return sum.Sum(nil)
}
