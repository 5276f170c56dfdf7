package input

import (
	"cmp"
	"net/http"
	"regexp"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
)

const (
	maxRepository    = 200
	maxStatusContext = 100
	maxRef           = 255
	maxStatusToken   = 500
	// statusContext is the name of a commit status that gives none.
	statusContext = "Human QA"
)

var (
	gitHubRepository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$`)
	gitLabRepository = regexp.MustCompile(`^([0-9]+|[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_.][A-Za-z0-9._-]*)+)$`)
	commitHash       = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// CommitToken is the header with the token of a commit status. It is no part of the body:
// a repeat with another token, such as one made for each run, is the same request.
const CommitToken = "X-Commit-Token"

// CommitStatus reads the commit status that a submission asks for; nil: none. A refusal
// of the token does not show it.
func CommitStatus(o wire.Object, h http.Header) *command.CommitStatus {
	c, given := o.Child("commitStatus")
	if !given {
		return nil
	}
	in := command.CommitStatus{CommitStatus: job.CommitStatus{
		Provider:   c.OneOf("provider", job.GitHub, job.GitHub, job.GitLab),
		Repository: c.Required("repository", maxRepository),
		Commit:     strings.ToLower(c.Required("commit", maxCommitSHA)),
		Context:    cmp.Or(strings.TrimSpace(c.Optional("context", maxStatusContext)), statusContext),
		Ref:        strings.TrimSpace(c.Optional("ref", maxRef)),
		FailOn: c.OneOf("failOn", string(job.Minor),
			string(job.Critical), string(job.Major), string(job.Minor), job.StatusFailNever),
	}}
	if in.Repository != "" {
		switch form := map[string]*regexp.Regexp{job.GitHub: gitHubRepository, job.GitLab: gitLabRepository}[in.Provider]; {
		case form != nil && !form.MatchString(in.Repository), strings.Contains("/"+in.Repository+"/", "/../"):
			c.Wrong("repository", "must be owner/name, as in the repository's URL")
		}
	}
	if in.Commit != "" && !commitHash.MatchString(in.Commit) {
		c.Wrong("commit", "must be the whole hash of the commit, in hexadecimal")
	}
	if !Printable(in.Context) {
		c.Wrong("context", "must be printable ASCII")
	}
	in.Token = h.Get(CommitToken)
	switch {
	case in.Token == "":
		o.Wrong(CommitToken, "is required with commitStatus: the header with a token that may write commit statuses")
	case len(in.Token) > maxStatusToken || !Printable(in.Token) || strings.Contains(in.Token, " "):
		o.Wrong(CommitToken, "must be 1 to %d printable ASCII characters without blanks", maxStatusToken)
	}
	return &in
}
