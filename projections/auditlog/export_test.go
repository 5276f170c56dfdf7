package auditlog

import "time"

// SetEvery lets a test not wait for a minute.
func (k *Keeper) SetEvery(d time.Duration) { k.every = d }

// LeafByIDSQL is how an event is found.
const LeafByIDSQL = leafByIDSQL
