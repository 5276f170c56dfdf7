package mail

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"time"
	"unicode/utf8"

	"humanqa/domain/identity"
)

// Links makes the links that stand in letters and knows them again. Nothing about them is
// stored.
type Links struct {
	// BaseURL starts them.
	BaseURL string
	// Keys gives the MAC keys of the master keyset (vault.MACKeys); 0 wants none in particular.
	Keys func(wanted uint32) (primary uint32, keys map[uint32][]byte)
}

// The uses of a link, which keep the MACs of one from being taken for the other's.
const (
	useStop    = "stop"
	useConfirm = "confirm"
	useRefuse  = "refuse"
	useMark    = "address"
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

// Refuse is the link that ends the letters of confirmation to an address. Its reader need
// not be the person who gave it.
func (l Links) Refuse(address string) string {
	return l.BaseURL + "/mail/stop/" + l.token(useRefuse, l.marks(address)[0], "")
}

// marks name an address in the database without showing it: its MAC under each key, the
// primary one first. Letters with another tag behind a plus reach the same reader.
func (l Links) marks(address string) (marks []string) {
	local, host, _ := strings.Cut(identity.Fold(address), "@")
	local, _, _ = strings.Cut(local, "+")
	primary, keys := l.Keys(0)
	for id, key := range keys {
		mark := base64.RawURLEncoding.EncodeToString(mac(key, useMark, local+"@"+host, ""))
		if marks = append(marks, mark); id == primary {
			last := len(marks) - 1
			marks[0], marks[last] = marks[last], marks[0]
		}
	}
	return marks
}

// Page is a page of ours.
func (l Links) Page(path string) string { return l.BaseURL + path }

func confirmed(address string, askedAt time.Time) string {
	return address + "\n" + askedAt.UTC().Format(time.RFC3339Nano)
}

// token names its subject: a person, or the mark of an address.
func (l Links) token(use, subject, about string) string {
	primary, keys := l.Keys(0)
	return base64.RawURLEncoding.EncodeToString([]byte(subject)) + "." +
		base64.RawURLEncoding.EncodeToString(mac(keys[primary], use, subject, about))
}

// subjectOf is the subject that a token names, without a proof.
func subjectOf(token string) string {
	name, _, _ := strings.Cut(token, ".")
	id, err := base64.RawURLEncoding.DecodeString(name)
	if err != nil || !utf8.Valid(id) || bytes.IndexByte(id, 0) >= 0 { // a stranger's bytes reach no statement
		return ""
	}
	return string(id)
}

// proves says that the token is ours, under any of the keys.
func (l Links) proves(token, use, subject, about string) bool {
	_, sum, _ := strings.Cut(token, ".")
	got, err := base64.RawURLEncoding.DecodeString(sum)
	if err != nil {
		return false
	}
	_, keys := l.Keys(0)
	for _, key := range keys {
		if hmac.Equal(got, mac(key, use, subject, about)) {
			return true
		}
	}
	return false
}

// mac is under a key of its own: the keyset's keys also prove events.
func mac(key []byte, use, subject, about string) []byte {
	own := hmac.New(sha256.New, key)
	own.Write([]byte("links of e-mail"))
	sum := hmac.New(sha256.New, own.Sum(nil))
	sum.Write([]byte(use + "\n" + subject + "\n" + about))
	return sum.Sum(nil)
}
