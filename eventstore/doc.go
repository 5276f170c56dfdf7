// Package eventstore is the only package that knows the event store's client
// library. It appends, loads and reads, and it keeps the shared tail of the
// log (Feed) that projections, webhooks and policies consume.
//
// # What the client library does not do
//
// Client v4.2.0 has traps, and all of them are handled here, once:
//
//   - A client that looks for its node in vain closes itself for good, and
//     callers that were on their way into it block for ever, without looking at
//     their context. One that finds it again leaks its previous connection. And
//     a failed read does not make it look at all. So a connector (connector.go)
//     asks for the node with a client it throws away, then opens the one that
//     is kept; once that turns bad, nobody enters it any more (gate.go), its
//     calls drain, it is closed, and a new one is opened with backoff. Every
//     call into the library runs on a goroutine of its own that can be left
//     behind should it not come back.
//   - A node that froze keeps its connections open, and gRPC's keepalive cannot
//     notice within 10 s: who waits has it looked at (connector.look).
//   - It panics on messages it does not expect: a panic becomes an error.
//   - io.EOF means "the end" from a stream and "closed" from a reader. A reader
//     here is never asked again after its first error, and only a Recv that
//     ends a live read counts as the end: a half-loaded aggregate must never
//     decide.
//   - A dropped subscription is dead: Feed subscribes again from the last
//     position it saw, with backoff.
//   - An event without an id gets a random one per call, which would make a
//     resend a second event: such events are refused.
//   - NextExpectedVersion says 1 for "no stream": the revision after an append
//     is computed from the expected one instead.
//
// # Unknown outcomes
//
// An append that was cut off may or may not have happened. Append sends the
// same stream, expected revision, ids and bytes again, which the node
// recognises, until it knows or gives up with domain.ErrUnknownOutcome.
//
// # The client line
//
// EventStore-Client-Go ends with v4.2.0: its repository is archived, and
// KurrentDB-Client-Go (github.com/kurrent-io/KurrentDB-Client-Go) succeeds it.
// That client speaks the same protocol and takes esdb:// addresses, so neither
// the log nor HUMANQA_EVENTSTORE_URL would change. What a change takes:
//
//   - This package, eventstore/conformance and the node's stubs: the package
//     esdb is named kurrentdb, ExpectedRevision is StreamState.
//   - gate.go leans on what the library logs, and when. At v1.1.2 the successor
//     still logs an error before it acts on it and still waits for its node
//     without a context, but it neither logs nor acts on an error that carries
//     the server's details. TestTheClientIsTheOneWhoseHabitsTheGateKnows fails
//     until that was looked at again.
//   - This package's tests and the conformance suite, run on the new client: the
//     traps above are handled until one of them shows that it is gone.
package eventstore
