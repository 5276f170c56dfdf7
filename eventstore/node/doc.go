// Package node is the embedded event store: a gRPC server that speaks EventStoreDB's
// protocol and keeps its events in Postgres (schema eventlog). The conformance suite
// (internal/testing/conformance) always runs against it, and against any server named
// by HUMANQA_TEST_EVENTSTORE_URL.
//
// # One writer
//
// Like the original, the node has a single writer. Handlers pass their appends to it
// over a queue. It checks every expected revision in memory (see states) and forms a
// group of all waiting appends. One INSERT writes the whole group: one transaction, one
// round trip, one fsync. The writer then publishes the group to the tail, and only then
// answers. While a group commits, the next one is gathered and decided. So groups grow
// with the load, and a single client never waits for others.
//
// For a stream outside its memory, the writer asks the database, on a second
// connection. But a stream that an append begins is nearly always new, so the writer takes it for absent.
// Then the INSERT writes the group only if neither the stream nor its metadata has any
// event, not even a tombstone. The writer decides nothing meanwhile. If the stream
// existed after all, nothing has been written. The group is then decided anew on the
// looked-up state: repeats, deleted streams and metadata need no rule of their own.
//
// The writer assigns positions: 1, 2, 3 … Only it inserts, and it commits in order. So
// positions have no holes, and no reader can see a later event before an earlier one.
// Its connection holds a session advisory lock. A writer that loses the connection
// loses the lock and the ability to commit in the same moment, so there is never a
// second writer. A writer that gets the lock knows that all writes of the previous
// holder are settled.
//
// # When something fails
//
// If a group's INSERT fails, its outcome is unknown: the answer may have been lost
// after the commit. Its members, and those of the group decided on top of it, are
// answered UNAVAILABLE. All cached state is dropped, and the writer starts over:
// connect, lock, read the head. Clients resend the same bytes, and the idempotency rule
// recognises the writes that had succeeded. A crash of the process at any moment leaves
// whole groups or nothing.
//
// If Postgres reports a full disk, nothing was written for sure. Appends are then
// answered RESOURCE_EXHAUSTED with a RetryInfo, at once. That ends when a trial event,
// which is taken back, finds room again.
//
// # Reading
//
// Reads are paged queries. A page is bounded in rows and in bytes, and is read
// completely before its first event is sent. For $all the next page is read meanwhile.
// So a slow client holds memory for two pages and never a connection. Live
// subscriptions follow the tail, a ring of the latest committed events in memory. They
// fall back to pages when they are too slow for it. They neither poll Postgres nor
// buffer without bound.
//
// # Positions and the protocol
//
// An event's commit and prepare position are both its position in $all. Zero is before
// the first event, so "from Position{0,0}" means from the start, inclusive or
// exclusive.
//
// # Deliberate differences from the original
//
//   - Positions count events and are no byte offsets.
//   - A repeat without an expected revision is recognised among the last events of its
//     stream only.
//   - Filters are RE2, without lookaround.
//   - Nothing can append to $all.
//   - There are no persistent subscriptions and no server-side projections. The only
//     users are admin and reader. A call for these gets an answer that says so, over
//     gRPC and in HTTP/1.1.
package node
