// Package consumer runs what follows the log into Postgres: the folds of the
// read models (package projections), and the webhooks' subscriber. Where each
// stands is a row of projection_checkpoints.
//
// # A batch
//
// A runner takes whatever has arrived behind its checkpoint and writes, in one
// transaction, the batch's rows and the new checkpoint. The checkpoint moves by
// compare-and-set: the old position, the owner and the owner's fencing token must still
// be what the runner believes. If they are not, somebody else took the lease
// over, and the whole batch rolls back. So a batch is applied exactly once,
// whoever crashed where. The transaction does not wait for the disk
// (synchronous_commit = off): what a crash of Postgres takes back, rows and
// checkpoint alike, is applied again.
//
// Its statements are pipelined: those that write wait for no answer before the COMMIT's
// (pgpool.InTxPipelined). If that is a failure, all is done once more, statement by
// statement, which tells what is to blame. What is live is planned once, by plain index
// scans, however little is in the tables when a plan is made: the statement that moves
// the checkpoint says so (planOnce).
//
// Events that change nothing move the checkpoint in memory at once and in
// Postgres a little later. Reading them again is harmless.
//
// # Group commit
//
// The consumers of a process that have caught up stand at the same place, so
// their runners let one goroutine do their work, the group (group.go): it reads a
// page once, moves the checkpoints of all that have something to write with one
// statement, each under the same conditions as by itself, writes their rows one after
// the other, and commits once. Checkpoints that are stored without rows go the same way.
// What nobody waits for it holds for a moment (Limits.Gather): a command's next event may
// come right behind it. One that says that it is not the last one (domain.Prelude) is held
// until that comes, whoever waits elsewhere: the charge of a job and the job itself are one
// batch. What a Preparer handles is not held otherwise.
//
// Between two batches it rests half as long as the last one took, at most Limits.Gather:
// few events cost less than the wait for more, under load there is more to share.
//
// Preparers are a group of their own, so that the world outside hears while the read models
// are written. Those that gather for longer (Lazy) are, too, for each time one. It ends its
// rest when somebody waits for one of them (CatchUp).
//
// It decides nothing. Whatever goes wrong, a poison event, a lease that is lost, a
// row that is locked, a connection that breaks, a model that takes longer than
// sharedTime, the transaction rolls back and each of its consumers goes on by itself
// from its own checkpoint, as if there were no group: so what it does about the
// failure is told below, once. Each joins again when it has caught up, who was to
// blame after apartTime. While more comes at once than a small page holds they all go
// by themselves: large batches have little to share, and are written side by side. Who
// is being built is never in it. A Preparer prepares before the transaction; one that cannot
// leaves by itself.
//
// # What can be rebuilt, and what cannot
//
// A Projector's rows are a fold of the log and nothing else: it can be built
// anew at any time. A Preparer's have an effect elsewhere (a webhook is sent):
// it has one generation for ever and never goes back behind its checkpoint.
//
// # Generations
//
// Each read model lives in a Postgres schema of its own generation
// (jobs_v1_g1); readers only know the views in schema readmodel. A rebuild fills
// the next generation beside the serving one, from the first event on, and when
// it is at least as far, and has the indexes that readers need (Table.Indexes), it takes
// the views over in one transaction. A rebuild that is stopped goes on from its own
// checkpoint.
//
// The views outlive it, with the rights on them and the views that others have
// built upon them (views.go). What cannot be kept, such as a view that uses a
// column which is gone, is in the way: the old rows serve on, and the status
// says what it is (Status.Obstacle).
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
// A generation has a lease in its checkpoint row: an owner, a fencing token (column epoch) that goes
// up with every change of hands, and an end by Postgres' clock. Every batch
// renews it. The others stand by and take over when it ends.
//
// # Waiting
//
// Who wrote waits until the rows show it (WaitFor). A runner stores a
// checkpoint at once only with rows, so a process that waits for runners of
// another follows the log, too, and knows which of them have anything to do; the
// transaction that moves their checkpoint tells it where they are (news.go). Event types that only a later
// binary's consumers handle are not waited for.
//
// # When something fails
//
// What may get better (a lost connection, a full disk, a deadlock) is tried again. What
// will not, the runner narrows the batch down for, to one event, which it tries in a
// transaction of its own; what precedes it is applied.
//
// If that event is the cause (it cannot be decoded, a column or a constraint refuses it,
// the fold fails or panics), it is set aside: a row of projection_set_aside, in the
// transaction that moves the checkpoint behind it, says which event of which stream waits,
// and why. Events of the same stream behind it wait in the log, so that each stream's are
// applied in order; all other streams go on. Whoever waits for the projection is not held
// up. The streams are known in memory, by the owner of the lease.
//
// The line stops instead, and waits for an operator, where
//
//   - the failure is not known to be the event's, such as a table that is gone,
//   - a consumer needs the stream's events in the log's order (InOrder): the feed, whose
//     readers have a cursor; webhooks, for the streams that say where deliveries go. A
//     Witness always does,
//   - a generation goes on without Limits.Aside streams already: then it is the code.
//
// A stream that was set aside is tried again when a process takes the lease, which may be
// a newer binary's; after a pause that doubles up to an hour; and on an operator's word
// (Retry). It is read from the log and applied up to the first event that fails. Others
// have gone on meanwhile, so a read model is then ordered to be built anew, in the log's
// order. An operator may also skip an event, with a record of who and why: its stream
// goes on behind it. A rebuild sets aside by itself; Verify leaves out of its fold what
// the generation has set aside, and Status names it.
//
// Event types that this binary does not know are counted and passed over.
package consumer
