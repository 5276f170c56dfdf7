// Package node is the embedded event store: a gRPC server that speaks EventStoreDB's
// protocol and keeps its events in Postgres (schema eventlog). The conformance suite
// (internal/testing/conformance) always runs against it, and against any server named
// by HUMANQA_TEST_EVENTSTORE_URL.
//
// # The log
//
// Package store keeps the events. It has the one writer, which commits in groups, the pages
// for reads, and the tail of the latest events. A write with an unknown outcome is answered
// UNAVAILABLE: clients resend the same bytes, and the writer recognises them. A write that
// was certainly not written is answered RESOURCE_EXHAUSTED with a RetryInfo: at once while
// Postgres has no room, and while the writer connects.
//
// # Reading
//
// Reads are paged queries. For $all the next page is read while one is sent. So a slow
// client holds memory for two pages and never a connection. Live subscriptions follow the
// tail. They fall back to pages when they are too slow for it. They neither poll Postgres
// nor buffer without bound. A subscription to a stream that falls behind reads that stream.
//
// Each event of an append fits into a reader's message, with the link that leads to it. An
// event of an older version may not fit. Its data and metadata are then withheld, and a
// note of their sums stands in their place.
//
// # One holder
//
// Only the node with the log's lock answers. Another one refuses each call, and names the
// holder to clients of the TLS address once it knows where that is. A loss of the lock ends
// every call.
//
// # Before a password
//
// A connection to the TLS address is a stranger's until one of its calls has a password. The
// node looks for it before gRPC reads the call's message. Strangers are few, and the bytes and
// the time of each are bounded.
//
// # Positions and the protocol
//
// An event's commit and prepare position are both its position in $all. Zero is before
// the first event, so "from Position{0,0}" means from the start, inclusive or
// exclusive.
//
// # Differences from the original
//
// docs/eventstore.md has them, too.
//
//   - Positions count events and are no byte offsets. One whose two halves differ is
//     refused.
//   - The limit of an append counts metadata and names, and a link has a limit of its own.
//   - The name of a stream has 2,500 bytes at most, and a type 65,536. Both are UTF-8
//     without NUL.
//   - A repeat without an expected revision is recognised among the last 100,000 events of
//     the log.
//   - A filter's regular expression has 8 KiB at most, and a second for each name.
//   - Such an expression knows no named blocks (\p{IsCyrillic}), and a character beyond 16
//     bits is one and not two.
//   - A filter without an expression and without a prefix is refused.
//   - An event of type $> whose data begin with no number is read as itself by live
//     subscriptions, too.
//   - Nothing appends to $all or to the metadata of metadata, and metadata are not deleted
//     alone.
//   - Metadata with comments or single quotes are no JSON and limit nothing.
//   - An $acl is kept and gives no rights, and its fields are not looked at.
//   - Nothing is scavenged: events that are hidden or deleted stay in $all.
//   - The node writes no events but those of deletes: no statistics, no epochs.
//   - An event's time is in microseconds.
//   - A subscription to a stream that is not there catches up at once.
//   - A slow subscription is not dropped.
//   - There are no followers that answer reads. Only the holder of the log answers.
//   - An append goes to one stream, as in the protocol of 24.10.
//   - Over HTTP/1.1 there is only /health/live, and over HTTP/2 only gRPC.
//   - There are no persistent subscriptions, no projections in the server, and no users
//     but admin and reader.
package node
