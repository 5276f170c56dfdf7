package job

import (
	"fmt"
	"slices"
	"time"

	"humanqa/domain"
)

// CommitStatus is a status at a commit of a code host, which tells the verdict of jobs
// once they have ended. It does not hold the token: no event does.
type CommitStatus struct {
	Provider   string `json:"provider"`                 // github, gitlab
	Repository string `json:"repository" sealed:"text"` // owner/name
	Commit     string `json:"commit"`                   // the whole hash, lower-case hex
	Context    string `json:"context" sealed:"text"`    // the name of the status among those of the commit
	// Ref is the branch or the pull request. A newer submission with the same provider,
	// repository, context and ref cancels the untouched jobs of this one, in the projects
	// that its key may use; empty: no submission does.
	Ref string `json:"ref,omitempty" sealed:"text"`
	// FailOn is the least severity of a failure that counts, or StatusFailNever.
	FailOn string `json:"failOn"`
}

// The providers of commit statuses.
const (
	GitHub = "github"
	GitLab = "gitlab"
)

// StatusFailNever lets no failure count.
const StatusFailNever = "never"

// SamePlace says that a newer submission of the one replaces the other.
func (c CommitStatus) SamePlace(o CommitStatus) bool {
	return c.Ref != "" && c.Provider == o.Provider && c.Repository == o.Repository && c.Context == o.Context && c.Ref == o.Ref
}

// CommitState is a state of a commit status, in GitHub's words.
type CommitState string

// The states. Pending is no verdict; the others are, and hold.
const (
	CommitPending CommitState = "pending"
	CommitSuccess CommitState = "success"
	CommitFailure CommitState = "failure"
	CommitError   CommitState = "error" // no verdict will come
)

// CommitStatusRequested asks for the status. It is in the same append as job.created.
// Jobs are the jobs with one verdict together, this job among them. The first of them
// that exists records the status.
type CommitStatusRequested struct {
	CommitStatus
	Jobs []string `json:"jobs"`
	// AccountWide says that the key of the submission may use every project of the account.
	// So the submission replaces jobs of all of them, and otherwise those of its own project.
	AccountWide bool      `json:"accountWide,omitempty"`
	At          time.Time `json:"at"`
}

// CommitStatusSet says that the code host took the status.
type CommitStatusSet struct {
	State CommitState `json:"state"`
	At    time.Time   `json:"at"`
}

// CommitStatusAbandoned says that the code host will not get the verdict.
type CommitStatusAbandoned struct {
	Reason string    `json:"reason"` // for the client; never quotes the host's answer
	At     time.Time `json:"at"`
}

func (*CommitStatusRequested) EventType() string { return "job.commit_status_requested" }
func (*CommitStatusSet) EventType() string       { return "job.commit_status_set" }
func (*CommitStatusAbandoned) EventType() string { return "job.commit_status_abandoned" }

func (e *CommitStatusRequested) evolve(s *State) { s.CommitStatus = e }
func (e *CommitStatusSet) evolve(s *State)       { s.CommitTold = e.State }
func (e *CommitStatusAbandoned) evolve(s *State) { s.CommitAbandoned = e.Reason }

// TellsCommit says whether a commit status tells the job's verdict.
func (s State) TellsCommit() bool { return s.CommitStatus != nil }

// CommitPart is a job's part in the verdict at a commit.
type CommitPart struct {
	Status        Status
	OverallStatus string // of a report
	Counted       int    // failures that count
	CancelReason  string
}

// CommitPart gives the job's part in the verdict at a commit.
func (s State) CommitPart() CommitPart {
	p := CommitPart{Status: s.Status, CancelReason: s.CancelReason}
	if s.Report == nil {
		return p
	}
	p.OverallStatus = s.Report.OverallStatus
	for _, i := range s.Report.Items {
		if i.Status == ItemFail && s.CommitStatus != nil && severeEnough(i.Severity, s.CommitStatus.FailOn) {
			p.Counted++
		}
	}
	return p
}

// severeEnough says whether a failure of the severity counts. An unknown severity is taken for
// the gravest one.
func severeEnough(s Severity, failOn string) bool {
	order := []Severity{Critical, Major, Minor}
	return max(slices.Index(order, s), 0) <= slices.Index(order, Severity(failOn))
}

// CommitVerdict is the state of the commit with a description of at most 140 characters,
// the limit of GitHub. A failure outweighs a test without a verdict. Voided jobs have no
// part in it.
func CommitVerdict(parts []CommitPart) (state CommitState, description string) {
	var tests, ended, failures, untested, superseded int
	for _, p := range parts {
		if p.Status == StatusVoided || p.Status == "" {
			continue
		}
		tests++
		if p.Status.Ended() {
			ended++
		}
		failures += p.Counted
		switch {
		case p.CancelReason == CancelSuperseded:
			superseded++
		case p.Status.Ended() && (p.Status != StatusCompleted || p.OverallStatus == "inconclusive"):
			untested++
		}
	}
	switch {
	case ended < tests:
		return CommitPending, "A person tests the app."
	case failures > 0:
		return CommitFailure, counted(failures, "failure") + " in " + counted(tests, "test") + "."
	case superseded > 0:
		return CommitError, "A newer commit took the place of this one."
	case untested > 0 || tests == 0:
		return CommitError, counted(untested, "test") + " of " + fmt.Sprint(tests) + " ended without a verdict."
	}
	return CommitSuccess, counted(tests, "test") + " passed."
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// DecideTellCommit records that the code host has the state. An earlier verdict stays.
func DecideTellCommit(s State, state CommitState, now time.Time) ([]domain.Event, error) {
	if s.CommitStatus == nil || s.CommitTold == state || s.CommitDone() {
		return nil, nil
	}
	return []domain.Event{&CommitStatusSet{State: state, At: now}}, nil
}

// DecideAbandonCommit records that the code host will not get the verdict.
func DecideAbandonCommit(s State, reason string, now time.Time) ([]domain.Event, error) {
	if s.CommitStatus == nil || s.CommitDone() {
		return nil, nil
	}
	return []domain.Event{&CommitStatusAbandoned{Reason: reason, At: now}}, nil
}

// CommitDone says that the commit status will not change any more.
func (s State) CommitDone() bool {
	return !s.ErasedAt.IsZero() || s.CommitAbandoned != "" || s.CommitTold != "" && s.CommitTold != CommitPending
}
