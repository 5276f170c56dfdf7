package eventstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/eventstore/mac"
)

// Authenticate gives a MAC to every event that is appended from now on. Without keys, events
// get none. It is called before the client is used.
func (c *Client) Authenticate(keys mac.Keys) { c.macs = keys }

// Authentic checks the MAC of an event as the log stores it.
func (c *Client) Authentic(e RawEvent) mac.Verdict {
	return c.macs.Verify(mac.Event{
		Stream: e.Stream, Revision: e.Revision, Type: e.Type, ID: e.ID, JSON: !e.Binary, Data: e.Data, Meta: e.Meta,
	})
}

// Bound says how a log is proved, as its newest KeyBound or Named event states.
type Bound struct {
	Key   string          // SHA-256, in hex, of the verifier of checkpoints; empty: the log is older than that
	At    domain.Position // behind it each event of the service carries a MAC
	Since time.Time
	// Judged are the events that an operator has accepted or disowned, by their ids.
	Judged map[string]*origin.AuditJudged
}

// Bound reads the log's statements about its proof. It accepts only events with a MAC.
func (c *Client) Bound(ctx context.Context) (b Bound, err error) {
	err = c.ReadRaw(ctx, origin.Stream, func(e RawEvent) error {
		if c.Authentic(e) != mac.Genuine {
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
	case *origin.AuditJudged:
		// The first word about an event is final: decisions rest on it.
		if before := b.Judged[said.EventID]; said.EventID != "" && (before == nil || before.Sum != said.Sum) {
			b.Judged = maps.Clone(b.Judged) // others may read it
			if b.Judged == nil {
				b.Judged = map[string]*origin.AuditJudged{}
			}
			b.Judged[said.EventID] = said
		}
	}
	if key == "" || b.Key != "" && r.Position.Compare(b.At) <= 0 {
		return b
	}
	b.Key, b.At, b.Since = key, r.Position, r.Stored.Created
	return b
}

// judged is an operator's word about this very event; nil: there is none.
func (b Bound) judged(e RawEvent) *origin.AuditJudged {
	if said := b.Judged[e.ID.String()]; said != nil && said.Sum == e.Sum() {
		return said
	}
	return nil
}

// Disowns says that the event counts for nothing.
func (b Bound) Disowns(e RawEvent) bool {
	said := b.judged(e)
	return said != nil && said.Disowned
}

// Sum is the SHA-256, in hex, of an event as the log stores it.
func (r RawEvent) Sum() string {
	stored := r.Recorded().Stored
	sum := sha256.New()
	for _, part := range []string{r.Stream, strconv.FormatUint(r.Revision, 10), r.Type, string(stored.Data[:]), string(stored.Meta[:])} {
		_, _ = fmt.Fprintf(sum, "%d:%s\n", len(part), part) // a hash takes everything
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Unproved gives the reason why an event is not proved to be the service's. It is empty
// for a proved event. It is also empty for events from before MACs, for event types of
// other writers, and for events about which an operator has decided.
func (c *Client) Unproved(e RawEvent, b Bound) string {
	if b.Key == "" || e.Position.Compare(b.At) <= 0 || b.judged(e) != nil {
		return ""
	}
	switch verdict := c.Authentic(e); {
	case verdict == mac.Wrong:
		return "carries a MAC that is not this service's"
	case verdict == mac.Strange:
		return "carries a MAC under a key that the keyset lacks: it is forged, or this keyset is older than the event (docs/keys.md)"
	case verdict == mac.None && Version(e.Type) > 0:
		return "carries no MAC: this service did not write it"
	}
	return ""
}

// recorded decodes an event that a decision or a fold may rely on. An event that is not
// proved to be the service's is a *DecodeError for domain.ErrForged.
func (c *Client) recorded(ctx context.Context, e RawEvent, sums bool) (domain.Recorded, error) {
	r, err := e.decode(sums)
	if err != nil || c.macs == nil {
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
	if b.Disowns(e) {
		nothing := e.recorded(sums)
		nothing.Disowned = true
		return nothing, nil
	}
	if e.Stream == origin.Stream && c.Authentic(e) == mac.Genuine {
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
	for i := range events {
		e := &events[i]
		e.Metadata = c.macs.Sign(mac.Event{
			Stream: stream, Revision: first + uint64(i), Type: e.EventType, ID: e.EventID, JSON: e.ContentType == esdb.ContentTypeJson,
			Data: e.Data, Meta: e.Metadata,
		})
	}
}
