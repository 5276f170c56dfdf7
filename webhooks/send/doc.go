// Package send sends the deliveries that wait in package queue, as signed POSTs to the
// projects' endpoints. Any number of dispatchers may run, in any number of processes.
//
// # The way of a delivery
//
// A dispatcher claims deliveries, sends each in one of a bounded number of places, and
// settles the outcomes together with the next claim. While nothing waits, successes wait a
// tenth of a second for others, so that they settle together. Their places and the endpoint's
// cap are free at once. Direct dispatch (direct.go) skips the claim: the subscriber writes
// the lease.
//
// Answers are read by guard.Answers. A status below 200 is a failed attempt, no read outlasts
// the attempt, and a body gets one second after its status.
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
// When a delivery fails for good its endpoint is disabled in the rows. The event for the log
// (project.webhook_disabled) is appended after the commit, and again until it is there
// (report.go).
//
// While a rotation of the secret lasts, the attempts of a delivery alternate between the two
// secrets. A receiver that accepts the new one ends the rotation (queue/rotation.go).
package send
