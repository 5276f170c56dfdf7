package command_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/policy"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// codeHost is a code host with the tokens that are kept for it.
type codeHost struct {
	commandtest.NoReads
	held   map[string]string
	told   []string
	fails  error
	placed []string // jobs that have a status at some place
}

func (h *codeHost) SamePlace(context.Context, string, job.CommitStatus) ([]string, error) {
	return h.placed, nil
}

func (h *codeHost) Hold(_ context.Context, account, name, use string, secret []byte, _ time.Duration) error {
	h.held[account+name] = use + string(secret)
	return nil
}

func (h *codeHost) Held(_ context.Context, account, name, use string) ([]byte, error) {
	held, found := h.held[account+name]
	secret, bound := strings.CutPrefix(held, use)
	switch {
	case !found:
		return nil, domain.ErrShredded
	case !bound:
		return nil, domain.ErrUnsealable
	}
	return []byte(secret), nil
}

func (h *codeHost) Forget(_ context.Context, account, name string) error {
	delete(h.held, account+name)
	return nil
}

func (h *codeHost) Set(_ context.Context, to job.CommitStatus, token string, is command.StatusUpdate) error {
	if h.fails == nil {
		h.told = append(h.told, fmt.Sprintf("%s %s %s", to.Commit, token, is.State))
	}
	return h.fails
}

func setupCodeHost(t *testing.T) (bundle, *codeHost) {
	t.Helper()
	b, h := setup(t, 100), &codeHost{held: map[string]string{}}
	var asked atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(asked.Add(1)) * time.Second) } // no two jobs are of one time
	b.Service = command.New(command.Deps{
		Log: b.log, Sealer: openSealer{}, AI: commandtest.AI{}, Reads: h, Now: now, ClaimsPerChecker: 1, Tokens: h, Statuses: h,
	})
	return b, h
}

// A commit status has a place, and any key may name it. So the key's right decides, and the
// code host's word on the token.
func TestANewerSubmissionReplacesWhatItsKeyMayCancel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		older, newer string // projects
		bound        bool   // the newer one's key is bound to its project
		fails        error  // of the newer one's first status
		want         job.Status
	}{
		"of the key's project":          {"p", "p", true, nil, job.StatusCancelled},
		"of another project":            {"p", "q", true, nil, job.StatusPending},
		"of no project":                 {"", "q", true, nil, job.StatusPending},
		"by a key of the account":       {"p", "q", false, nil, job.StatusCancelled},
		"by a token that is refused":    {"p", "p", false, command.ErrStatusRefused, job.StatusPending},
		"while the code host is silent": {"p", "p", false, errors.New("down"), job.StatusPending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, h := setupCodeHost(t)
			projects := map[string]string{"p": b.project(t, 30), "q": b.project(t, 30)}
			submit := func(project string, bound bool) string {
				cause := b.cause()
				if bound {
					cause.ProjectID = projects[project]
				}
				made, err := b.SubmitJob(t.Context(), cause, command.SubmitJob{
					Submission: job.Submission{URL: "https://example.com", Title: "Title", Type: job.GeneralQA, TypeEcho: "general_qa", ProjectID: projects[project]},
					Items:      []command.NewItem{{Description: "loads", Severity: job.Major}},
					CommitStatus: &command.CommitStatus{
						CommitStatus: job.CommitStatus{Provider: job.GitHub, Repository: "a/b", Commit: "c", Context: "QA", Ref: "main"}, Token: "token",
					},
				})
				must.NoError(t, err)
				h.placed = append(h.placed, made.JobID)
				return made.JobID
			}
			older := submit(c.older, false)
			must.NoError(t, b.tells(t, older))
			newer := submit(c.newer, c.bound)
			h.fails = c.fails
			if err := b.tells(t, newer); err != nil && (c.fails == nil || errors.Is(c.fails, command.ErrStatusRefused)) {
				t.Error(err)
			}
			if got := b.job(older).Status; got != c.want {
				t.Errorf("the older test is %s, want %s", got, c.want)
			}
			if c.fails == nil || errors.Is(c.fails, command.ErrStatusRefused) {
				return
			}
			h.fails = nil
			must.NoError(t, b.tells(t, newer))
			if got := b.job(older).Status; got != job.StatusCancelled {
				t.Errorf("once the code host took the status the older test is %s", got)
			}
		})
	}
}

// tells fires the timer of a job's commit status.
func (b bundle) tells(t *testing.T, jobID string) error {
	t.Helper()
	for _, p := range policy.All(b.Service) {
		for _, e := range b.log.Stream(domain.JobStream(jobID)) {
			if p.Kind == "commit_status" && slices.Contains(p.Handles, e.Type) {
				timer := p.React(e)[0].Timer
				timer.CauseID = e.ID.String()
				return p.Fire(t.Context(), timer)
			}
		}
	}
	return errors.New("the job has no commit status")
}

// A token is forgotten however the job ends, and whatever the code host says.
func TestTheTokenOfACommitStatusEndsWithItsJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   func(t *testing.T, b bundle, h *codeHost, id string)
		state job.CommitState // the last word; empty: none
	}{
		"cancelled": {func(t *testing.T, b bundle, _ *codeHost, id string) {
			_, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
			must.NoError(t, err)
		}, job.CommitError},
		"untestable": {func(t *testing.T, b bundle, _ *codeHost, id string) {
			_, err := b.FailJob(t.Context(), b.cause(), id, job.FailUntestable)
			must.NoError(t, err)
		}, job.CommitError},
		"the token expired": {func(t *testing.T, b bundle, h *codeHost, id string) {
			clear(h.held)
			_, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
			must.NoError(t, err)
		}, ""},
		"the token was moved": {func(t *testing.T, b bundle, h *codeHost, id string) {
			for name := range h.held {
				h.held[name] = "another"
			}
			_, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
			must.NoError(t, err)
		}, ""},
		"refused": {func(t *testing.T, b bundle, h *codeHost, id string) {
			h.fails = fmt.Errorf("%w: no", command.ErrStatusRefused)
			_, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
			must.NoError(t, err)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, h := setupCodeHost(t)
			made, err := b.SubmitJob(t.Context(), b.cause(), command.SubmitJob{
				Submission:   job.Submission{URL: "https://example.com", Title: "Title", Type: job.GeneralQA, TypeEcho: "general_qa"},
				CommitStatus: &command.CommitStatus{CommitStatus: job.CommitStatus{Provider: job.GitHub, Commit: "c"}, Token: "canary"},
			})
			must.NoError(t, err)
			tell := func() error {
				_, err := b.TellCommit(t.Context(), b.cause(), made.JobID)
				return err
			}
			h.fails = errors.New("down")
			wantKind(t, tell(), domain.KindUnavailable) // which is tried again
			h.fails = nil
			must.NoError(t, tell())
			must.NoError(t, tell()) // a repeat
			c.end(t, b, h, made.JobID)
			b.log.Fail(logtest.To(domain.JobStreams), false, errCut) // a crash between the code host and the log
			_ = tell()
			b.log.Heal()
			must.NoError(t, tell())
			must.NoError(t, tell())
			st := b.job(made.JobID)
			if len(h.held) != 0 || !st.CommitDone() || (st.CommitAbandoned == "") != (c.state != "") || c.state != "" && st.CommitTold != c.state {
				t.Errorf("%d tokens are kept, told %s, abandoned %q", len(h.held), st.CommitTold, st.CommitAbandoned)
			}
			if h.told[0] != "c canary pending" || c.state != "" && h.told[len(h.told)-1] != "c canary "+string(c.state) {
				t.Errorf("told: %q", h.told)
			}
		})
	}
}
