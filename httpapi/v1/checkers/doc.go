// Package checkers is the handlers of checkers, under /v1/checker: the queue, claims,
// verdicts, evidence and recordings, sessions.
package checkers
