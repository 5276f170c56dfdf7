// Package command runs the requests of callers against the log. api.go lists every
// request and its answer. A file holds one command, or the commands of one subject.
// Package settings has the commands for accounts, people and projects, package claims
// those of a checker with a claim, package money the ledgers, package streams the repositories.
//
// # A command
//
// A command loads the streams that it touches, or takes them from the cache. The
// pure decide functions of the aggregates decide, and the command appends their
// events at the expected revision.
//
// Commands on one stream queue at its one writer (package domain/repository), so they never
// collide within a process. The writer decides the commands that queued during an
// append in their order. One further append writes their events, all or none. So a
// busy ledger pays for one commit a batch.
//
// The folded state is cached, for jobs up to 32 MB. A command trusts it only through
// the expected revision of its append. A refusal and a repeat append nothing, so they
// read the tail of the stream from the log first.
//
// A ledger is closed every thousand events by an event of its own (money/books.go). A fold
// begins at the newest close, so the cost of a restart does not grow with the ledger.
//
// # Several streams
//
// A command that touches several streams keeps one order: settings first
// (idempotent), then the money, then the job. A crash in between leaves a charge
// without a job, and never a job without a charge. Package policy settles that
// charge: it first appends job.voided to the job's stream, so that a late
// job.created loses, and then refunds. Ending a job reverses the order: first the
// job, then the refund. The policy repeats a refund that is missing.
//
// Ids derive from the command's id (domain/id.go). With an Idempotency-Key, the id of
// the command is stored before the first write. So the same command, sent again after
// any crash, finds its own earlier writes. If the policy has settled the charge by
// then, the command starts again with a job whose id derives from the first one
// (again.go).
//
// # Hosted tests
//
// A hosted test refuses before it writes (404, 409, 402). It then writes the link of
// the host (package host), so that twenty first tests make one project. One append to
// the project follows: its opening, the webhook, the fixes for this test, the deploy.
// The money and the job come last. The jobs themselves tell which fixes are free, and
// whether the job of a deploy is live. A job that is not there yet counts as live for
// a minute. A bulk submission and a session charge all their jobs in one append.
//
// # Sessions
//
// The stream of a session exists before the jobs of its slots. SettleSession finds
// out which steps are due, and may run at any time. So running it again heals a
// crash between any two writes. Readiness belongs to a claim and ends with it. A
// checker in the lobby sends heartbeats as in any other job.
package command
