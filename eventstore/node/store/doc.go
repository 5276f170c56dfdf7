// Package store keeps the events of the embedded event store in Postgres: one writer that
// commits in groups, pages for reading, and the tail of the latest events.
//
// # One writer
//
// Like the original, the node has a single writer. Calls hand their appends
// to it over a queue. It checks every expected revision in memory (see states)
// and forms a group of the appends that have arrived. One INSERT writes the whole
// group: one transaction, one round trip, one fsync. Then the group is published to
// the tail, and only then answered. While a group commits the next one is gathered
// and decided. So groups grow with the load, and a single append never waits for
// others.
//
// A write that waits longer than its client is not written. If a client has given up by
// the time at which its group would go to Postgres, the group is decided anew without it,
// once.
//
// It looks unknown streams up in the connection beside the session's. A stream that an
// append expects to begin is nearly always new, so it is assumed absent. The INSERT
// writes the group only if neither the stream nor its metadata has any event, not even a
// tombstone. No other write is decided meanwhile. If the stream has events after all,
// nothing has been written. The group is then looked up and decided anew, so repeats,
// deleted streams and metadata need no rule of their own.
//
// The writer assigns positions: 1, 2, 3 and so on. Only it inserts, and it commits in
// order. So positions have no holes, and no reader can see a later event before an
// earlier one. Its connection holds a session advisory lock. A writer
// that loses the connection loses the lock and the ability to commit in the same
// moment, so there is never a second writer. The next holder of the lock knows that
// everything the previous one had in flight is settled.
//
// # When something fails
//
// If a group's INSERT has no answer its outcome is unknown (the answer may have been
// lost behind the commit). Its members are answered ErrUnavailable, all cached state is
// dropped, and the writer starts over: connect, lock, read the head and the ids of the
// last events. Clients resend the same bytes; the idempotency rule recognises events that
// had been written. A crash of the process at any moment leaves whole groups or nothing.
// Writes that were decided on top of the group, or that come before the writer is back, are
// answered with a RefusedError: they are certainly not written. So are those of a group whose
// INSERT Postgres has refused.
//
// If Postgres says that its disk is full, it is certain that nothing was written. Then
// appends are answered with a RefusedError, at once, until the trial write of an event,
// which is rolled back, finds room again.
//
// # Reading
//
// A page is bounded in rows and in bytes and is read completely before its first event
// is used. The bytes of an event that no message has room for stay in Postgres, which hashes
// them once. The tail holds the latest committed events in memory. A read waits ten seconds
// for a Postgres that does not answer.
package store
