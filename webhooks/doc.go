// Package webhooks tells a project's endpoint what happened: it keeps the endpoints, makes
// deliveries of events, and is their log. Package send delivers them, by signed POSTs, out of
// package queue.
//
// # Subscriber
//
// The Subscriber is a consumer of the log (eventstore/consumer). One transaction folds
// project.* events into the endpoints (URL, secret, kinds of events), writes a delivery for
// each event that an endpoint subscribes to, and moves the checkpoint. A delivery holds the
// exact bytes to send. Its id derives from endpoint and event. So a crash before the commit
// leaves nothing, and the repeat makes the same rows.
//
// A new delivery that may go at once is leased, in the same transaction, to the dispatcher of
// the subscriber's own process (direct.go). All others wait for a claim.
//
// # The lock of an endpoint
//
// Each change of an endpoint, or of the state of one of its deliveries, holds the row of the
// endpoint. So a claim sees the URL, the secret and the switch as one, and claims nothing
// after a disable. The row also says when a dispatcher has to look at the endpoint next
// (due_at). Each change that makes a delivery due moves that time (wake.go).
//
// # Log
//
// The Log lists deliveries and attempts. It sends one again, replays or drops held ones, has
// a test event sent, and tells the health of an endpoint. Deliveries that were delivered or
// dropped are deleted after 30 days. Those that may be replayed stay.
package webhooks
