// Package domain holds what every aggregate shares: events and their
// metadata, positions, the log as the domain sees it, ids, money and the one
// error type.
//
// The sub-packages hold one aggregate each (account, checker, credits, job,
// project). They are pure: a decide function turns a state and a command into
// events or an error, an evolve function folds an event into a state; the
// clock and all ids come in with the command. Package command runs those
// decisions against the log, package policy issues the commands that nobody
// asks for.
package domain
