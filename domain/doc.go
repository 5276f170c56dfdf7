// Package domain holds the shared parts of every aggregate: events and their metadata,
// positions, the interface of the log, ids, money and the one error type.
//
// Each aggregate is a sub-package: account, checker, credits, host, job, loop,
// oversight, person, pool, project, session. They are pure. A decide function turns a
// state and a command into events or an error. An evolve function folds an event into a
// state. The clock and all ids come in with the command.
//
// The other packages below it are:
//
//   - repository runs those decisions against the log.
//   - command holds the commands of callers.
//   - policy reacts to events with commands.
//   - announce lists the public events and their payloads.
//   - subscription lists the names that a project may subscribe to.
//   - audit folds the whole log and finds broken invariants.
//   - origin holds the log's statements about itself.
//   - identity tells which spellings are one text, host, name or secret.
//   - retention holds the rules of how long evidence is kept, and of holds.
package domain
