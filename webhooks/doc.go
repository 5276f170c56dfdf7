// Package webhooks tells a project's endpoint what happened, by signed POSTs.
//
// The Subscriber follows the log; eventstore/consumer runs it, as it does the
// read models. In one transaction it keeps the endpoints (which URL, which
// secret, which kinds of events; folded from project.* events), writes a
// delivery with the exact bytes to send for each event that an endpoint wants,
// and moves its checkpoint. A crash before the commit leaves nothing; the repeat
// makes the same rows, because a delivery's id derives from endpoint and event.
//
// What may go at once the Subscriber leases to the Dispatcher of its own process, in
// that transaction, which hands it over once it is committed (handover.go). All else
// the Dispatcher finds by itself. While nothing waits, what has arrived is settled a tenth of
// a second later, with whatever else has; that it was answered its endpoint's cap knows at once.
//
// The Dispatcher sends. It leases endpoints, for as long as requests to them are
// under way, and their rows say which deliveries those are: so a claim writes a row
// for each endpoint, none for a delivery. Each is sent with a deadline shorter than
// the lease, and what became of it is settled: state and attempt log in one
// transaction with the next claim, fenced twice, by the endpoint's lease and by the
// attempt's number, which has to be the delivery's next one. A crash in between
// leaves a lease that runs out, or ends with the connection on which the process
// listened; what was under way is written off, which takes its number, and is sent
// again under the same id. A process that comes back from a pause finds the endpoint
// another's, or the number taken. Any number of dispatchers may run.
//
// One lock orders it all: whoever changes an endpoint, or the state of one of
// its deliveries, holds the endpoint's row. So a claim sees the URL, the
// secret and the switch as one, and nothing is claimed after a disable. The
// row also says when the endpoint is to be looked at next (due_at): the
// dispatcher serves the endpoints in that order, a few deliveries each, and an
// endpoint that was served goes to the back. That, and the cap in flight per
// endpoint, is why one that hangs is not felt by the others. What it answers is
// read by guard.Answers: a status below 200 is a failed attempt at once, no read
// outlasts the attempt, and once the status is there the body gets a second. Where an
// endpoint offers HTTP/2, requests to a host share a connection, and one that breaks
// there is made once more on its own: it may have been another's answer. Where no
// connection is, one request goes ahead and the others wait for its (scouts). An
// endpoint that took all the time it was given is served one at a time until it
// answers promptly; one that answers well is trusted with more (caps), out of the
// upper half of the pool only. Nor is an account felt whose many endpoints all
// hang: it gets four fifths of a process's pool at most, and so does the next one of
// what is left (shares).
//
// While a rotation of the secret lasts, the attempts of a delivery alternate between
// the two secrets, and a receiver that accepts the new one ends it (rotation.go).
//
// When a delivery fails for good its endpoint is disabled at once, in the rows;
// the others of its deliveries are held. The event that tells the log
// (project.webhook_disabled) is appended after the commit, and again until it
// is there.
//
// The Log lists deliveries and attempts, sends one again, replays or drops what
// is held, has a test event sent, and tells how an endpoint does. What was
// delivered or dropped goes after 30 days; what may be replayed stays. A
// Receiver is the other end, for trials.
package webhooks
