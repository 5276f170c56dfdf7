// Package mac proves that the service wrote an event. Each event of the service ends its
// metadata with a MAC, under a key that is in no database. Write access to the log's table
// is not enough to make one. It binds stream, revision, type, id, content type, data, and
// the metadata before it. The log sets the time later, so the MAC does not bind it. A copy
// of the log keeps revisions and bytes, so the MAC holds there too.
package mac

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/google/uuid"
)

const (
	field   = `,"mac":"`
	version = "humanqa mac 1"
	size    = 16 // bytes of HMAC-SHA-256
)

// length is the field with the key's id in hex, a point, and the MAC.
var length = len(field) + 8 + 1 + base64.RawURLEncoding.EncodedLen(size) + len(`"}`)

// Keys gives the keys of events' MACs by their ids, which may become more. Primary is the id
// of the key for new MACs. A wanted key is looked for where keys come from; 0 wants none.
// Nil: there are no keys.
type Keys func(wanted uint32) (primary uint32, keys map[uint32][]byte)

// Event is what a MAC binds.
type Event struct {
	Stream   string
	Revision uint64
	Type     string
	ID       uuid.UUID
	JSON     bool
	Data     []byte
	Meta     []byte // with the MAC, where there is one
}

// Verdict is the result of checking an event's MAC.
type Verdict int

// The results of checking a MAC.
const (
	None    Verdict = iota // the event carries none
	Wrong                  // it was not made for this event
	Strange                // it names a key that is not there: an older keyset lacks it, or a forger made it up
	Genuine                // the writer of the event had the key
)

// Verify checks the MAC of an event as the log stores it.
func (k Keys) Verify(e Event) Verdict {
	at := len(e.Meta) - length
	if at < 1 || !bytes.HasPrefix(e.Meta[at:], []byte(field)) {
		return None
	}
	token := e.Meta[at+len(field) : len(e.Meta)-len(`"}`)]
	id, err := strconv.ParseUint(string(token[:8]), 16, 32)
	if err != nil || k == nil {
		return Wrong
	}
	_, keys := k(uint32(id))
	key, known := keys[uint32(id)]
	if !known {
		return Strange
	}
	e.Meta = e.Meta[:at]
	if !hmac.Equal(token, tokenOf(uint32(id), key, e)) {
		return Wrong
	}
	return Genuine
}

// Sign gives the event's metadata with a MAC behind it; as they are without keys.
func (k Keys) Sign(e Event) (meta []byte) {
	if k == nil {
		return e.Meta
	}
	primary, keys := k(0)
	e.Meta = bytes.TrimSuffix(e.Meta, []byte("}"))
	return bytes.Join([][]byte{e.Meta, []byte(field), tokenOf(primary, keys[primary], e), []byte(`"}`)}, nil)
}

func tokenOf(id uint32, key []byte, e Event) []byte {
	dataSum, metaSum := sha256.Sum256(e.Data), sha256.Sum256(e.Meta)
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{ // each behind its length, so that none can be read as the end of another
		version, e.Stream, strconv.FormatUint(e.Revision, 10), e.Type, e.ID.String(), strconv.FormatBool(e.JSON), string(dataSum[:]),
		string(metaSum[:]),
	} {
		_, _ = fmt.Fprintf(mac, "%d:%s\n", len(part), part) // a hash takes everything
	}
	token := append(hex.AppendEncode(nil, []byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}), '.')
	return base64.RawURLEncoding.AppendEncode(token, mac.Sum(nil)[:size])
}
