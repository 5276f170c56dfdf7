// Package httpapi is the service over HTTP: decode, authorise, command, render.
//
// One table (routes.go) names every route with its audience and its handler.
// gorilla/mux only matches paths: it is asked, not served through, because its
// middleware is skipped on 404 and 405 and it answers odd paths with redirects
// that carry no envelope. Every request takes the same way (api.go), in the
// order that holds for all (decisions, "Order of checks"):
//
//	request id → 401 → 403 → 429 → 413 → 404/405 of the route → 400 → 404 → 409 → 402
//
// A handler gets a *request and returns an answer or an error; nothing is on
// the wire until it has returned, so a panic or a late error can still become
// the right status. errors.go is the only place where an error becomes a
// status. Handlers marshal their own structs, never a domain struct.
//
// A write runs detached from the client's connection (request.command): a
// client that hangs up between a charge and its job must not leave the charge
// alone. Its answer waits, bounded, until the read models have caught up.
package httpapi
