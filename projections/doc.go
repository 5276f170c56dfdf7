// Package projections lists the read models. Each is a folder with its tables, the fold
// that writes them, and the queries that read them. A new one is such a folder and a
// line in All. Queries for the API also stand in Reads.
//
// eventstore/consumer runs the folds. readmodel holds the shared parts of folds and
// queries.
//
// # Rebuilds
//
// All read models that are built or verified at the same time read the log in one
// shared scan, and a page is decoded once for all. Events that none of them handles are
// not decoded. The next page is read while Postgres writes one. Many new rows at once
// are copied (readmodel.Append). Indexes for readers only are made once a build has its
// rows (Table.Indexes).
//
// # Other packages
//
// Some packages are no plain read models:
//
//   - timers keeps the timers of the policies. events keeps the feed of announcements.
//     Both gather for a moment, and writes do not wait for them. A reader of the feed
//     waits until it shows the same as the other read models (CatchUp).
//   - analytics makes the stable views for analysts and exports, over the views of the
//     read models.
//   - asof answers ?asOf= from the log, with the read models' own folds and without
//     tables.
//   - changes tells open pages about changed streams.
//   - auditlog is the Merkle tree over the log.
package projections
