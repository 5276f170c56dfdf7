// Package readers is about the readers of the feed of events. It judges their cursors
// (cursors.go), wakes their streams (watch.go), and knows those that gave a name (?reader=):
// the place of each, its lag, and when it was last seen.
//
// A reader's place is the cursor that it asks with, which confirms all events up to
// there. A stream's place is the last event that was sent. Places are noted in memory and
// written every few seconds by one statement, so a reader that asks often costs no more
// than one that asks seldom. A crash loses the notes of those seconds, and the reader's
// next request brings them back.
//
// The rows are in Postgres only. They are no facts: an account, or the operator who erases
// one, may forget them at any time.
package readers
