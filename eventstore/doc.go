// Package eventstore is the only package that imports the event store's client library.
// It appends, loads and reads, and it keeps the shared tail of the log (Feed) for
// projections, webhooks and policies. The service speaks to any log through this client
// only, including its own embedded node.
//
// # The feed
//
// One subscription a process decodes the tail of the log once, into a ring that all
// consumers share. A consumer asks for the events after its own checkpoint. They come
// from the ring, or else as a page from the log. So one place handles dropped
// subscriptions, a slow consumer delays no other one, and a rebuild is a consumer that
// starts at zero.
//
// # Which log
//
// A log has a name (domain/origin), its first event. The database remembers the name
// and the newest position of its log (eventstore/binding). Another log behind it, or a
// shorter one, is refused at the start and at run time. Copy copies a log to another
// server, event by event (copy.go). The database can follow it: package binding then
// moves every stored position. So columns with a position are called commit_position
// and prepare_position, or position.
//
// # Personal data and MACs
//
// An account's name is sealed on its way into the log, and opened where events are read
// (personal.go). Each event carries a MAC under a key that no database holds (mac.go).
//
// # Traps of the client library
//
// Client v4.2.0 has these traps, and this package handles each in one place:
//
//   - A client that does not find its node closes itself for good. Callers on their way
//     into it block for ever and ignore their context. A client that finds the node
//     again leaks its previous connection. A failed read does not make it look for the
//     node at all. So a connector (connector.go) first asks for the node with a
//     throw-away client, which nothing else enters, and then opens the client that it
//     keeps. Once that client turns bad, no call enters it any more (gate.go). Its calls
//     drain, it is closed, and a new one is opened with backoff. Every call into the
//     library runs on its own goroutine, which can be left behind if it does not return.
//   - A frozen node keeps its connections open, and gRPC's keepalive cannot notice
//     within 10 s. So a waiting call has the node checked (connector.look).
//   - The library panics on unexpected messages: a panic becomes an error.
//   - io.EOF means "the end" from a stream and "closed" from a reader. A reader here is
//     never used after its first error. Only a Recv that ends a live read counts as the
//     end: a half-loaded aggregate must never decide.
//   - A dropped subscription is dead: Feed subscribes again from its last position,
//     with backoff.
//   - An event without an id gets a random one per call, so a resend would write a
//     second event: such events are refused.
//   - NextExpectedVersion says 1 for "no stream": the revision after an append is
//     computed from the expected one instead.
//
// # Unknown outcomes
//
// An append that was cut off may or may not have happened. Append sends the same
// stream, expected revision, ids and bytes again, which the node recognises. It stops
// when it knows the outcome, or gives up with domain.ErrUnknownOutcome.
//
// # The client line
//
// EventStore-Client-Go ends with v4.2.0: its repository is archived, and
// KurrentDB-Client-Go (github.com/kurrent-io/KurrentDB-Client-Go) succeeds it. That
// client speaks the same protocol and takes esdb:// addresses, so neither the log nor
// HUMANQA_EVENTSTORE_URL would change. A change takes:
//
//   - This package, internal/testing/conformance and the node's stubs: the package esdb
//     is named kurrentdb, ExpectedRevision is StreamState.
//   - gate.go depends on the library's log lines and their order. The successor at v1.4.2
//     has both habits: tools/clients/kurrentdb holds it to them (make contract). It lets
//     a call go whose context ends while it waits for its node. But it leaks its previous
//     connection still, and neither logs nor acts on an error that carries the server's
//     details. TestTheClientIsTheOneWhoseHabitsTheGateKnows fails until a newer one was
//     checked.
//   - This package's tests and the conformance suite, run on the new client: the traps
//     above are handled until one of them shows that it is gone.
package eventstore
