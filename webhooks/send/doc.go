// Package send sends the deliveries that package webhooks has written, as signed POSTs to
// the projects' endpoints. Any number of dispatchers may run, in any number of processes.
//
// # Claim and lease
//
// A dispatcher leases an endpoint for as long as requests to it are under way. The row of the
// endpoint names the holder (lease_id) and these deliveries (in_flight). So a claim writes a
// row for each endpoint, and none for a delivery. The register inFlight has the same for this
// process. Direct dispatch (direct.go) skips the claim: the subscriber writes the lease.
//
// The dispatcher serves endpoints in the order of due_at, a few deliveries each. An endpoint
// that was served goes to the back.
//
// # Settlement
//
// A request has a deadline shorter than the lease. Its outcome is settled: delivery, attempt
// and endpoint change in one transaction, together with the next claim. Two fences guard it.
// The endpoint's lease must be this process's, and the attempt's number must be the
// delivery's next one. While nothing waits, successes wait a tenth of a second for others, so
// that they settle together. Their places and the endpoint's cap are free at once.
//
// A crash leaves a lease that ends by itself, or sooner, when the connection on which the
// process listened is gone (peers.go). The attempts expire then: each takes its number,
// and the delivery is sent again under the same id. A process that comes back from a
// pause finds that another process has the lease, or that the number is taken.
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
//   - Answers are read by guard.Answers. A status below 200 is a failed attempt, no read
//     outlasts the attempt, and a body gets one second after its status.
//
// # Connections
//
// Where an endpoint offers HTTP/2, requests to a host share a connection. Another endpoint's
// answer may break it, so a request that breaks there is made once more on a connection of
// its own. Where a host has no connection, one request dials and the others wait for it
// (dial.go).
//
// # Failures and rotations
//
// When a delivery fails for good its endpoint is disabled at once, in the rows, and its other
// deliveries are held. The event for the log (project.webhook_disabled) is appended after the
// commit, and again until it is there (report.go).
//
// While a rotation of the secret lasts, the attempts of a delivery alternate between the two
// secrets. A receiver that accepts the new one ends the rotation (rotation.go).
package send
