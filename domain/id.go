package domain

import "github.com/google/uuid"

// Credits is an amount of money in whole credits.
type Credits int64

// idSpace separates our derived ids from all others.
var idSpace = uuid.NewSHA1(uuid.NameSpaceDNS, []byte("humanqa"))

// DeriveID gives the id that follows from another one: the same parent and name always
// give the same id. This makes a repeated command harmless.
func DeriveID(parent uuid.UUID, name string) uuid.UUID {
	return uuid.NewSHA1(parent, []byte(name))
}

// CommandIDFor derives a command's id from its parts, such as the event that
// caused it and the policy that reacts.
func CommandIDFor(parts ...string) uuid.UUID {
	id := idSpace
	for _, p := range parts {
		id = DeriveID(id, p)
	}
	return id
}

// The streams of the log: a category, a dash, an id.
const (
	AccountStreams = "account-"
	CheckerStreams = "checker-"
	CreditsStreams = "credits-"
	ProjectStreams = "project-"
	JobStreams     = "job-"
	SessionStreams = "session-"
	LoopStreams    = "loop-"
	HostStreams    = "host-"
	PersonStreams  = "person-"
	PoolStreams    = "pool-"
	// OperatorStreams are keyed by the operator.
	OperatorStreams = "operator-"
)

// AccountStream holds an account's keys and its suspension.
func AccountStream(accountID string) string { return AccountStreams + accountID }

// CheckerStream holds a checker's key and the claims they took.
func CheckerStream(checkerID string) string { return CheckerStreams + checkerID }

// CreditsStream is the ledger of one account.
func CreditsStream(accountID string) string { return CreditsStreams + accountID }

// ProjectStream holds a project's settings.
func ProjectStream(projectID string) string { return ProjectStreams + projectID }

// JobStream is the life of one job.
func JobStream(jobID string) string { return JobStreams + jobID }

// SessionStream is the life of one multi-checker session.
func SessionStream(sessionID string) string { return SessionStreams + sessionID }

// LoopStream holds the runs of one agent on one project.
func LoopStream(loopID string) string { return LoopStreams + loopID }

// PersonStream holds a person's rights.
func PersonStream(personID string) string { return PersonStreams + personID }

// HostStream says which project the hosted tests of an account's host belong
// to.
func HostStream(accountID, host string) string {
	return HostStreams + CommandIDFor("host", accountID, host).String()
}

// PoolStream holds a pool of checkers.
func PoolStream(poolID string) string { return PoolStreams + poolID }

// OperatorStream holds a person's acts as an operator.
func OperatorStream(personID string) string { return OperatorStreams + personID }
