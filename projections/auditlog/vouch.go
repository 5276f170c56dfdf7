package auditlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/eventstore"
)

// ErrForged says that the log holds events which the service did not write.
var ErrForged = errors.New("the log holds what this service did not write")

// Bound says how a log is proved, as its newest KeyBound or Named event states.
type Bound struct {
	Key string          // KeyHash of the verifier; empty: the log is older than that
	At  domain.Position // behind it each event of the service carries a MAC

	since time.Time
}

// KeyHash is the SHA-256, in hex, by which a log names its key.
func KeyHash(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return hex.EncodeToString(sum[:])
}

// Bound reads the log's statement about its key. It accepts only an event with a MAC.
func (s *Signer) Bound(ctx context.Context) (b Bound, err error) {
	err = s.log.ReadRaw(ctx, origin.Stream, func(e eventstore.RawEvent) error {
		if s.log.Authentic(e) != eventstore.Genuine {
			return nil // the check of the log reports it
		}
		r, err := e.Decode()
		if err != nil {
			return err
		}
		key := ""
		switch said := r.Event.(type) {
		case *origin.Named:
			key = said.AuditKey
		case *origin.KeyBound:
			key = said.AuditKey
		}
		if key != "" {
			b = Bound{key, r.Position, e.Created}
		}
		return nil
	})
	return b, failed("read how the log is proved", err)
}

// unproved gives the reason why an event is not proved to be the service's. It is empty
// for a proved event. It is also empty for events from before MACs, and for event types
// of other writers.
func (s *Signer) unproved(e eventstore.RawEvent, b Bound) string {
	if b.Key == "" || e.Position.Compare(b.At) <= 0 {
		return ""
	}
	switch verdict := s.log.Authentic(e); {
	case verdict == eventstore.WrongMAC:
		return "carries a MAC that is not this service's"
	case verdict == eventstore.NoMAC && eventstore.Version(e.Type) > 0:
		return "carries no MAC: this service did not write it"
	}
	return ""
}

// vouch reads the log's events after the last checkpoint. It gives the root of the log's
// first size events if the tree has the same root.
func (s *Signer) vouch(ctx context.Context, tree Tree, last Checkpoint, size int64) (root tlog.Hash, err error) {
	var f frontier
	at := eventstore.Checkpoint{Start: true}
	if last.Size > 0 {
		if f, err = tree.frontier(ctx, last.Size); err != nil {
			return root, err
		}
		if f.root() != last.Root {
			return root, fmt.Errorf("%w: the tree of %d leaves does not go on from the checkpoint of %s", ErrForked, size, last)
		}
		leaves, err := tree.leaves(ctx, last.Size-1, last.Size)
		if err != nil || len(leaves) == 0 {
			return root, errors.Join(fmt.Errorf("the tree has no leaf %d", last.Size-1), err)
		}
		at = eventstore.At(leaves[0].Position) // a copy of the log has other positions than those signed
	}
	b, err := s.Bound(ctx)
	if err != nil {
		return root, err
	}
	forged, example := 0, ""
	for f.size < size {
		page, next, end, err := s.log.ReadAllRaw(ctx, at.Position, at.Start, int(min(size-f.size, exportPage)))
		if err != nil {
			return root, fmt.Errorf("read the log behind %s: %w", at.Position, err)
		}
		for _, e := range page {
			l := leafOf(e.Recorded())
			if why := s.unproved(e, b); why != "" {
				if forged++; forged == 1 {
					example = l.String() + " " + why
				}
			}
			f.add(l.Hash())
		}
		if at = eventstore.At(next); end && f.size < size {
			return root, fmt.Errorf("%w: the tree has %d leaves, the log %d events", ErrForked, size, f.size)
		}
	}
	if forged > 0 {
		return root, fmt.Errorf("%w: %s (%d such events since %s)", ErrForged, example, forged, last)
	}
	if root, err = tree.Root(ctx, size); err == nil && root != f.root() {
		err = fmt.Errorf("%w: the tree of %d leaves is not that of the log's events behind the checkpoint of %s", ErrForked, size, last)
	}
	return root, err
}
