// Package consumer runs the consumers that follow the log into Postgres: the folds of the
// read models (package projections), and the subscriber of the webhooks. The place of each
// in the log is a row of projection_checkpoints.
//
// # A batch
//
// A runner takes the events behind its checkpoint. In one transaction it writes the rows of
// the batch and the new checkpoint. The checkpoint moves by compare-and-set: the old
// position, the owner and the owner's fencing token must be those that the runner knows. If
// they are not, another process has taken the lease over, and the whole batch rolls back. So
// a batch is applied exactly once, wherever a process crashes. The transaction does not wait
// for the disk (synchronous_commit = off). A crash of Postgres takes back rows and
// checkpoint together, and they are applied again.
//
// The statements of a live batch are planned once, by plain index scans, even while the
// tables are nearly empty. The statement that moves the checkpoint orders that
// (generation.PlanOnce).
//
// Events that change nothing move the checkpoint in memory at once and in Postgres a
// little later. Reading them again is harmless.
//
// # Shared batches
//
// The consumers of a process that have caught up stand at the same place. One goroutine
// does their work, a shared batch (shared_batch.go). It reads a page once, and moves
// the checkpoints of all participants that write with one statement, each under the same
// conditions as by itself. It writes their rows one after the other, and commits once.
// Checkpoints that are stored without rows go the same way.
//
// A page that no request of this process waits for is held for a moment (Limits.Gather),
// because the next event of a command may come right behind it. An event that announces
// another one (domain.MoreFollows) is held until that one comes, also while another process
// waits. So the charge of a job and the job itself are one batch. Events that a
// Preparer handles are not held otherwise.
//
// Between two batches it rests half as long as the last one took, at most Limits.Gather.
// Few events cost less than the wait for more; under load there is more to share.
//
// Preparers have a shared batch of their own, and so have Announcers. So a webhook is prepared
// while the read models are written, and only Announcers wait for those. Consumers that gather
// for longer (Lazy) have one for each time to gather. Its rest ends when a request waits for
// one of them (CatchUp).
//
// A shared batch decides nothing. The transaction rolls back after any trouble: a poison
// event, a lost lease, a locked row, a broken connection, a read model that takes longer
// than Limits.Shared. Then each participant goes on by itself from its own checkpoint, and
// the section on failures below holds for it. Each joins again when it has caught up; the
// one to blame does so after Limits.CoolDown. While more events come at once than a small
// page holds, all go by themselves: large batches have little to share, and are written
// side by side. A generation that is being built is never a participant. A Preparer prepares
// before the transaction; one that cannot leaves.
//
// # Read models can be rebuilt, Preparers cannot
//
// A Projector's rows are a fold of the log and nothing else: it can be built anew at any
// time. A Preparer's have an effect elsewhere (a webhook is sent): it has one generation for
// ever and never goes back behind its checkpoint.
//
// # Generations
//
// Each read model lives in a Postgres schema of its own generation (jobs_v1_g1). Readers
// only know the views in schema readmodel. A rebuild fills the next generation beside the
// serving one, from the first event on. It takes the views over in one transaction once it
// is at least as far and has the indexes that readers need (Table.Indexes). A rebuild that
// is stopped goes on from its own checkpoint.
//
// The views outlive it, with the rights on them and the views that others have built upon
// them (views.go). A view of others that cannot be kept, because it uses a column that is
// gone, is an obstacle: the old rows serve on, and Status.Obstacle names it.
//
// New code with a higher version orders its own rebuild at the start. Until the rebuild is
// done the old rows are shown, and only code of the old version, in a service that was not
// replaced yet, keeps them up to date. The new code is not ready meanwhile
// (Status.Problem): a query of a column or a table that the old rows lack fails, and the API
// answers 503. Other queries are answered from the old rows.
//
// # One runner at a time
//
// A generation has a lease in its checkpoint row: an owner, a fencing token (column epoch)
// that rises with every change of hands, and an end by Postgres' clock. Every batch renews
// it. Other processes stand by and take over when it ends. They end the lease of a process
// that has died (peers.go), so that no request waits for the rest of it.
//
// # Waiting
//
// WaitFor(pos) blocks until every read model that handles an event up to pos has applied it.
// A runner stores a checkpoint at once only with rows. So a process that waits for the
// runners of another follows the log, too, and knows which of them have anything to do. The
// transaction that moves their checkpoint notifies it. Event types that only the
// consumers of a later binary handle are not waited for, nor are Lazy read models, unless
// they are named (CatchUp).
//
// # Announcements
//
// Nothing is announced to a client that the client cannot read yet. An Announcer (webhooks,
// notices, the feed) waits between its preparation and its transaction until every read model
// that WaitFor waits for shows the last event of the batch (AwaitReads). It holds no
// connection and no lock meanwhile, and no read model waits for an Announcer. Read models of
// other processes are waited for, too. A rebuild beside the serving rows announces nothing.
//
// The wait is over after Limits.Reads, and at once for a line that stopped. Announcements then
// go on without that read model, until it shows the position at which it was passed over. The
// log says so once.
//
// # When something fails
//
// A failure that may pass (a lost connection, a full disk, a deadlock) is tried again. For
// any other the runner narrows the batch down to one event, which it tries in a transaction
// of its own; the events before it are applied.
//
// If that event is the cause (it cannot be read or decoded, a column or a constraint refuses it,
// the fold fails or panics), it is set aside. A row of projection_set_aside says which event
// of which stream waits, and why; the transaction that moves the checkpoint behind the event
// writes it. Events of the same stream behind it wait in the log, so that the events of each
// stream are applied in order. All other streams go on. Requests that wait for the
// projection are not held up. The owner of the lease knows the streams in memory.
//
// The line stops instead, and waits for an operator, where
//
//   - the failure is not known to be the event's, such as a table that is gone,
//   - a consumer needs the stream's events in the log's order (InOrder): the feed, whose
//     readers have a cursor; webhooks, for the streams that say where deliveries go. A
//     RawConsumer always does. A forged event (domain.ErrForged) does not count: the service
//     writes nothing behind it,
//   - a generation goes on without Limits.Aside streams already: then it is the code.
//
// A stream that was set aside is tried again when a process takes the lease, since it may
// run newer code. It is tried after a pause that doubles up to an hour, and when an operator
// asks for it (Retry). It is read from the log and applied up to the first event that fails. Other
// streams have gone on meanwhile, so a read model is then built anew, in the log's order. An
// operator may also skip an event, with a record of the operator and the reason: its stream
// goes on behind it. A rebuild sets aside by itself. Verify leaves out of its fold the
// streams that the generation has set aside, and Status names them.
//
// Event types that this binary does not know are counted and passed over.
package consumer
