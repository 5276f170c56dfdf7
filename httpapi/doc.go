// Package httpapi is the service over HTTP: decode, authorise, command, render.
//
// # The way of a request
//
// A route stands beside its handler, with its audience. Those of clients are in package v1,
// those of checkers in package checkers. The public ones are in routes.go, which makes one
// table of all.
// gorilla/mux only matches paths and serves none. Its middleware is skipped on 404 and
// 405, and it answers odd paths with redirects without an envelope. Every request takes
// the same way, in one order (decisions, "Order of checks"):
//
//	request id → 401 → 403 → 429 → 413 → 404/405 of the route → 400 → 404 → 409 → 402
//
// A handler gets a request and returns an answer or an error. Nothing is on the wire
// until it has returned, so a panic or a late error can still become the right status.
// Package wire turns errors into statuses, in one place. Handlers marshal their own
// structs, never a domain struct.
//
// A write runs detached from the client's connection: a client that hangs up between a
// charge and its job must not leave the charge alone. Its answer waits, for a bounded
// time, until the read models have caught up.
//
// # Bounds
//
// A body above 1 MB goes to the disk while it arrives, up to a share of each caller.
// Two are in memory at a time, and only while they are parsed. A body of any size that
// arrives too slowly is cut off. A listener's connections are counted (connections.go).
// Reads of the past, exports and statements have places (decisions, "Places"): the
// answer bounds their memory.
//
// # The contract
//
// Package openapi is the contract as a document. Tests walk routes and document both
// ways, and check every answer that any test receives against it
// (internal/testing/apicheck). A new route fails the walks of contract_*_test.go until
// they know its key scopes, its idempotency and its claim's token. GET /v1/events reads
// the announcements of an account in the log's order. Package announce renders webhooks
// and feed, so both agree.
package httpapi
