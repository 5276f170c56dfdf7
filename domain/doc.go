// Package domain holds what every aggregate shares: events and their
// metadata, positions, the log as the domain sees it, ids, money and the one
// error type.
//
// A sub-package each holds an aggregate: account, checker, credits, host, job,
// loop, oversight, person, pool, project, session. They are pure: a decide
// function turns a state and a command into events or an error, an evolve
// function folds an event into a state; the clock and all ids come in with the command. Package command runs
// those decisions against the log, package policy issues the commands that
// nobody asks for, package announce says what the outside world is told of,
// package subscription which of it a project may ask for by name, package audit
// folds the whole log to find what must never be true of it, package origin is
// what a log says of itself, and package scenario lets the aggregates' tests
// read as sentences.
package domain
