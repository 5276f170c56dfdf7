package auditlog

import (
	"context"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// SetEvery lets a test not wait for a minute.
func (k *Keeper) SetEvery(d time.Duration) { k.every = d }

// LeafByIDSQL is how an event is found.
var LeafByIDSQL = leafByIDSQL

// Consistency proves that the first size leaves go on from the first old.
func (t Tree) Consistency(ctx context.Context, size, old int64) (tlog.TreeProof, error) {
	return tlog.ProveTree(size, old, t.hashes(ctx))
}
