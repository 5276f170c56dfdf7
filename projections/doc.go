// Package projections turns the log into rows, and answers queries from them.
//
// # A batch
//
// A runner takes whatever has arrived behind its checkpoint and writes, in one
// transaction, the batch's rows and the new checkpoint. The checkpoint moves by
// compare-and-set: the old position, the owner and the owner's epoch must still
// be what the runner believes. If they are not, somebody else took the lease
// over, and the whole batch rolls back. So a batch is applied exactly once,
// whoever crashed where; and since the log can always rebuild the rows, the
// transaction does not wait for the disk (synchronous_commit = off): what a
// crash of Postgres takes back, rows and checkpoint alike, is applied again.
//
// Events that a projector does not handle move the checkpoint in memory at
// once and in Postgres a little later. Reading them again is harmless.
//
// # Generations
//
// Each projection lives in a Postgres schema of its own generation
// (jobs_v1_g1); readers only know the views in schema readmodel. A rebuild fills
// the next generation beside the serving one, from the first event on, and when
// it is at least as far it takes the views over in one transaction. A rebuild
// that is stopped goes on from its own checkpoint.
//
// New code with a higher version orders its own rebuild at the start. Until that
// is done the old rows are shown, and only code of the old version, in a service
// that was not replaced yet, keeps them up to date. The new code is not ready
// meanwhile (Status.Problem): a query of it that names a column or a table which
// the old rows lack fails, and the API answers 503; the others are answered from
// the old rows.
//
// # One runner at a time
//
// A generation has a lease in its checkpoint row: an owner, an epoch that goes
// up with every change of hands, and an end by Postgres' clock. Every batch
// renews it. The others stand by and take over when it ends.
//
// # When something fails
//
// What may get better (a lost connection, a deadlock) is tried again. What will
// not (an event that cannot be decoded, a violated constraint) stops the line:
// the runner narrows the batch down to the event, applies what precedes it, and
// records the failure. An operator then retries, or skips the event with a
// record of who and why. Event types that this binary does not know are counted
// and passed over.
package projections
