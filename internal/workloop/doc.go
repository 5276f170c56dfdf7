// Package workloop does leased work.
//
// Work belongs to its taker until a lease ends, and then to whoever takes it
// next, in this process or another. A Loop takes what is due, does each item in
// one of a bounded number of places, and settles in batches what came of it. One
// goroutine alternates between settling and taking, or does both at once where the
// work can (Exchanger): while one round talks to the
// database more items end, so batches grow with the load. Where there is nothing to
// take, what has ended may wait a little for more (Config.Gather).
//
// Three things hold whatever the code in a place does:
//
//   - A place comes back when its lease ends. The item is anybody's then; what
//     its code still says is settled if nobody else has taken it by then.
//   - A panic ends one item, not the process. Its lease is left to run out.
//   - A stop is bounded: the items under way get Drain to end by themselves and
//     a moment more after their context has ended; the rest is left to its leases.
//
// A pool in which nothing ends by itself for longer than a lease says so
// (Problem, and the metrics).
//
// # Leases
//
// There are two kinds of lease in the service, because two things are leased.
//
// A consumer of the log is leased for as long as its process lives, by one owner
// who renews it; its fence is the checkpoint, which moves only by compare-and-set
// in the transaction of the rows (package consumer).
//
// An item of work is leased once, for as long as it may take, and never renewed;
// its fence is a token that only this lease has, which settling asks for. All items
// are done by this loop. Where the lease is written down differs with what it is
// about: a delivery's stands in its endpoint's row (webhooks.endpoints), which one
// process has at a time and where the claim sees the cap; the token is the number of
// the attempt. A
// timer's stands beside the timer (policy.leases), because timers are a read model
// that may be built anew at any time, and what was done must stay done.
//
// The embedded log's one writer is no lease at all but a session's advisory lock:
// it must end with its connection and by no clock (eventstore/node).
package workloop
