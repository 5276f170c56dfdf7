// Package queue is the queue of the deliveries that package webhooks has written: the tables
// as a dispatcher (package send) uses them. Any number of dispatchers may run, in any number
// of processes.
//
// # Claim and lease
//
// A dispatcher leases an endpoint for as long as requests to it are under way. The row of the
// endpoint names the holder (lease_id) and these deliveries (in_flight). So a claim writes a
// row for each endpoint, and none for a delivery. The register inFlight has the same for this
// process.
//
// A claim serves endpoints in the order of due_at, a few deliveries each. An endpoint that was
// served goes to the back.
//
// # Settlement
//
// A request has a deadline shorter than the lease. Its outcome is settled: delivery, attempt
// and endpoint change in one transaction, together with the next claim. Two fences guard it.
// The endpoint's lease must be this process's, and the attempt's number must be the
// delivery's next one.
//
// A crash leaves a lease that ends by itself, or sooner, when the connection on which the
// process listened is gone (peers.go). The attempts expire then: each takes its number,
// and the delivery is sent again under the same id. A process that comes back from a
// pause finds that another process has the lease, or that the number is taken.
//
// When a delivery fails for good its endpoint is disabled at once, in the rows, and its other
// deliveries are held. The event for the log is appended after the commit (package send).
//
// # Limits
//
// A slow or hostile endpoint never delays another one (limits.go):
//
//   - An endpoint has a cap on deliveries at once. It begins with a few. It doubles while
//     the endpoint answers well, but only out of the upper half of the pool. A time-out
//     leaves one at a time, until a prompt answer.
//   - An account has a quota. One account gets four fifths of the pool at most, the next one
//     four fifths of the rest.
package queue
