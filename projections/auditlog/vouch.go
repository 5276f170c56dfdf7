package auditlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"humanqa/domain"
	"humanqa/eventstore"
)

// KeyHash is the SHA-256, in hex, by which a log names its key.
func KeyHash(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return hex.EncodeToString(sum[:])
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
	b, err := s.log.Bound(ctx)
	if err != nil {
		return root, fmt.Errorf("read how the log is proved: %w", err)
	}
	forged, example := 0, ""
	for f.size < size {
		page, next, end, err := s.log.ReadAllRaw(ctx, at.Position, at.Start, int(min(size-f.size, exportPage)))
		if err != nil {
			return root, fmt.Errorf("read the log behind %s: %w", at.Position, err)
		}
		for _, e := range page {
			l := leafOf(e.Recorded())
			if why := s.log.Unproved(e, b); why != "" {
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
		return root, fmt.Errorf("%w: %s (%d such events since %s)", domain.ErrForged, example, forged, last)
	}
	if root, err = tree.Root(ctx, size); err == nil && root != f.root() {
		err = fmt.Errorf("%w: the tree of %d leaves is not that of the log's events behind the checkpoint of %s", ErrForked, size, last)
	}
	return root, err
}
