package eventstore

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
)

// Each event of the service ends its metadata with a MAC, under a key that is in no
// database. Write access to the log's table is not enough to make one. It binds stream,
// revision, type, id, content type, data, and the metadata before it. The log sets the
// time later, so the MAC does not bind it. A copy of the log keeps revisions and bytes,
// so the MAC holds there too.
const (
	macField   = `,"mac":"`
	macVersion = "humanqa mac 1"
	macBytes   = 16 // of HMAC-SHA-256
)

// macLength is the field with the key's id in hex, a point, and the MAC.
var macLength = len(macField) + 8 + 1 + base64.RawURLEncoding.EncodedLen(macBytes) + len(`"}`)

// MACKeys are the keys of events' MACs by their ids. Primary is the id of the key for new
// MACs; without keys, events get no MAC.
type MACKeys struct {
	Primary uint32
	Keys    map[uint32][]byte
}

// Authentic is the result of checking an event's MAC.
type Authentic int

// The results of checking a MAC.
const (
	NoMAC    Authentic = iota // the event carries none
	WrongMAC                  // it was not made for this event, or under a key that is not ours
	Genuine                   // the writer of the event had the key
)

// Authenticate gives a MAC to every event that is appended from now on. It is called
// before the client is used.
func (c *Client) Authenticate(keys MACKeys) { c.macs = keys }

// Authentic checks the MAC of an event as the log stores it.
func (c *Client) Authentic(e RawEvent) Authentic {
	at := len(e.Meta) - macLength
	if at < 1 || !bytes.HasPrefix(e.Meta[at:], []byte(macField)) {
		return NoMAC
	}
	token := e.Meta[at+len(macField) : len(e.Meta)-len(`"}`)]
	id, err := strconv.ParseUint(string(token[:8]), 16, 32)
	key, known := c.macs.Keys[uint32(id)]
	if err != nil || !known {
		return WrongMAC
	}
	want := macToken(uint32(id), key, e.Stream, e.Revision, e.Type, e.ID, !e.Binary, e.Data, e.Meta[:at])
	if !hmac.Equal(token, want) {
		return WrongMAC
	}
	return Genuine
}

// authenticated adds the MACs of events that follow on a revision of their stream.
func (c *Client) authenticated(stream string, first uint64, events []esdb.EventData) {
	key, ok := c.macs.Keys[c.macs.Primary]
	if !ok {
		return
	}
	for i := range events {
		e := &events[i]
		meta := bytes.TrimSuffix(e.Metadata, []byte("}"))
		token := macToken(c.macs.Primary, key, stream, first+uint64(i), e.EventType, e.EventID, e.ContentType == esdb.ContentTypeJson,
			e.Data, meta)
		e.Metadata = bytes.Join([][]byte{meta, []byte(macField), token, []byte(`"}`)}, nil)
	}
}

func macToken(
	id uint32, key []byte, stream string, revision uint64, eventType string, eventID uuid.UUID, isJSON bool, data, meta []byte,
) []byte {
	dataSum, metaSum := sha256.Sum256(data), sha256.Sum256(meta)
	mac := hmac.New(sha256.New, key)
	for _, field := range []string{ // each behind its length, so that none can be read as the end of another
		macVersion, stream, strconv.FormatUint(revision, 10), eventType, eventID.String(), strconv.FormatBool(isJSON), string(dataSum[:]),
		string(metaSum[:]),
	} {
		_, _ = fmt.Fprintf(mac, "%d:%s\n", len(field), field) // a hash takes everything
	}
	token := append(hex.AppendEncode(nil, []byte{byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)}), '.')
	return base64.RawURLEncoding.AppendEncode(token, mac.Sum(nil)[:macBytes])
}
