// Package workloop does leased work.
//
// Work belongs to one process until its lease ends. Then any process may take it. A
// Loop takes due items, does each in one of a bounded number of places, and settles the
// results in batches. One goroutine alternates between settling and taking, or does
// both at once where the work can (Exchanger). During one round with the database more
// items end, so batches grow with the load. Without due items, finished ones may wait a
// little for more (Config.Gather).
//
// The Loop guarantees three things for any code in a place:
//
//   - A place comes back when its lease ends. The item is then free. A late result
//     counts only if no other process has taken the item by then.
//   - A panic ends one item, not the process. Its lease runs out.
//   - A stop is bounded. The items in progress get Drain to end by themselves, and a
//     moment more after their context has ended. The rest is left to its leases.
//
// A pool in which no item ends for longer than a lease reports that, and so does a loop
// that stands still (Problem, and the metrics).
//
// # Leases
//
// The service has two kinds of lease, because it leases two kinds of things.
//
// A consumer of the log is leased for as long as its process lives, by one owner that
// renews the lease. Its fence is the checkpoint, which moves only by compare-and-set in
// the transaction of the rows (package consumer).
//
// An item of work is leased for one attempt: a delivery for its longest duration, a
// timer for a few seconds at a time, renewed until its firing ends. The fence is a token
// that only this lease has; settling checks it. This loop does all such items.
//
// The place of the lease depends on the item. A delivery's lease stands in its
// endpoint's row (webhooks.endpoints). One process has that row at a time, and the claim
// sees the cap there. The token is the number of the attempt. A timer's lease stands
// beside the timer (policy.leases), because timers are a read model that may be rebuilt
// at any time, and settled timers must stay settled.
//
// The embedded log's one writer has no lease but a session's advisory lock. It must end
// with its connection and by no clock (eventstore/node).
package workloop
