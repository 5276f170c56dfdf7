package words

import (
	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/projections/commitstatuses"
)

// AtCommit is the commit status of a test at a code host, with its state in words.
type AtCommit struct {
	commitstatuses.Status
	Words string
}

// commitWords are the states of a commit status.
var commitWords = map[job.CommitState]string{
	"":                "not set yet.",
	job.CommitPending: "set to pending until the test ends.",
	job.CommitSuccess: "set to success; the token is deleted.",
	job.CommitFailure: "set to failure; the token is deleted.",
	job.CommitError:   "set to error, since no verdict comes; the token is deleted.",
}

// AtCommitOf puts the read model's answer into words; nil: no commit status was asked for.
func AtCommitOf(s commitstatuses.Status, found bool, err error) (*AtCommit, error) {
	if err != nil || !found {
		return nil, err
	}
	at := &AtCommit{Status: s, Words: commitWords[s.State]}
	switch {
	case s.Abandoned != "" && s.State == "":
		at.Words = "never set. " + ui.Sentence(s.Abandoned)
	case s.Abandoned != "":
		at.Words = "it stays at " + string(s.State) + ". " + ui.Sentence(s.Abandoned)
	}
	return at, nil
}

// Streams are those that change the status: one of the tests with the same verdict records it.
func (a *AtCommit) Streams() []string {
	if a == nil {
		return nil
	}
	return []string{domain.JobStream(a.Statement)}
}
