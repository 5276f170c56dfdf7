package eventstore

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/origin"
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

// Bound says how a log is proved, as its newest KeyBound or Named event states.
type Bound struct {
	Key   string          // SHA-256, in hex, of the verifier of checkpoints; empty: the log is older than that
	At    domain.Position // behind it each event of the service carries a MAC
	Since time.Time
}

// Bound reads the log's statement about its key. It accepts only an event with a MAC.
func (c *Client) Bound(ctx context.Context) (b Bound, err error) {
	err = c.ReadRaw(ctx, origin.Stream, func(e RawEvent) error {
		if c.Authentic(e) != Genuine {
			return nil // the check of the log reports it
		}
		r, err := e.Decode()
		if err == nil {
			b = b.after(r)
		}
		return err
	})
	return b, err
}

// after is the statement that holds behind one more event of the log about itself.
func (b Bound) after(r domain.Recorded) Bound {
	key := ""
	switch said := r.Event.(type) {
	case *origin.Named:
		key = said.AuditKey
	case *origin.KeyBound:
		key = said.AuditKey
	}
	if key == "" || b.Key != "" && r.Position.Compare(b.At) <= 0 {
		return b
	}
	return Bound{key, r.Position, r.Stored.Created}
}

// Unproved gives the reason why an event is not proved to be the service's. It is empty
// for a proved event. It is also empty for events from before MACs, and for event types
// of other writers.
func (c *Client) Unproved(e RawEvent, b Bound) string {
	if b.Key == "" || e.Position.Compare(b.At) <= 0 {
		return ""
	}
	switch verdict := c.Authentic(e); {
	case verdict == WrongMAC:
		return "carries a MAC that is not this service's"
	case verdict == NoMAC && Version(e.Type) > 0:
		return "carries no MAC: this service did not write it"
	}
	return ""
}

// recorded decodes an event that a decision or a fold may rely on. An event that is not
// proved to be the service's is a *DecodeError for domain.ErrForged.
func (c *Client) recorded(ctx context.Context, e RawEvent, sums bool) (domain.Recorded, error) {
	r, err := e.decode(sums)
	if err != nil || len(c.macs.Keys) == 0 {
		return r, err
	}
	b, err := c.proof(ctx)
	if err != nil {
		return domain.Recorded{}, err
	}
	if why := c.Unproved(e, b); why != "" {
		forged := fmt.Errorf("%w: it %s", domain.ErrForged, why)
		return domain.Recorded{}, &DecodeError{Recorded: e.recorded(sums), Version: r.Meta.Schema, Err: forged}
	}
	if e.Stream == origin.Stream && c.Authentic(e) == Genuine {
		c.bound.Lock()
		defer c.bound.Unlock()
		c.bound.Bound = c.bound.after(r)
	}
	return r, nil
}

// proof is the newest statement of the log that came by here.
func (c *Client) proof(ctx context.Context) (_ Bound, err error) {
	c.bound.Lock()
	defer c.bound.Unlock()
	if !c.bound.read {
		if c.bound.Bound, err = c.Bound(ctx); err != nil {
			return Bound{}, fmt.Errorf("read how the log is proved: %w", err)
		}
		c.bound.read = true
	}
	return c.bound.Bound, nil
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
