// Package declared runs projections that an analyst or an operator declares in a file
// (docs/analytics.md, "Your own projections"): tables, and SQL that folds a batch of events
// into them.
//
// # A read model like the others
//
// A Projection is a consumer.Projector. Its checkpoint moves in the transaction of its rows, and
// it is built anew beside the serving rows. The same commands retry, skip and drop it, under
// the name declared_<name>. Its views stand in schema declared. The Keeper
// gives each projection a supervisor of its own, over a few lent connections. So none takes
// part in the batches, the scans and the waits of another read model.
//
// # What it may do
//
// Its author is not trusted. Each projection has a role of Postgres without a login, which
// may use the schema of its rows and nothing else. The statements become the body of a
// function in the form BEGIN ATOMIC. Postgres parses such a body when it is made, and takes
// only queries and changes of rows there: no SET, no COPY, no LOCK, no DO, no DDL. The names
// in it are bound then, so no search_path matters later. A call of a volatile function
// is refused by name. Such a function could change the role, take a lock, or sleep, and its
// rows would not be a fold of the log. The same holds for the expressions of the tables. A
// CREATE TABLE gets a storage option at its end, which no CREATE TABLE AS may have.
//
// Nothing of the file is executed but that function, as the role and under Limits. A batch
// that takes too long, or rows beyond the bounds, stop the line by name.
//
// A backup holds no roles. The Keeper builds rows anew whose function has another owner.
package declared
