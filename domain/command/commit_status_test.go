package command_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// codeHost is a code host with the tokens that are kept for it.
type codeHost struct {
	commandtest.NoReads
	held  map[string]string
	told  []string
	fails error
}

func (h *codeHost) Hold(_ context.Context, account, name, use string, secret []byte, _ time.Duration) error {
	h.held[account+name] = use + string(secret)
	return nil
}

func (h *codeHost) Held(_ context.Context, account, name, use string) ([]byte, error) {
	secret, bound := strings.CutPrefix(h.held[account+name], use)
	if !bound {
		return nil, domain.ErrShredded
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
		"refused": {func(t *testing.T, b bundle, h *codeHost, id string) {
			h.fails = fmt.Errorf("%w: no", command.ErrStatusRefused)
			_, err := b.CancelJob(t.Context(), b.cause(), id, job.CancelClient)
			must.NoError(t, err)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, 100)
			h := &codeHost{held: map[string]string{}}
			b.Service = command.New(command.Deps{
				Log: b.log, Sealer: openSealer{}, AI: commandtest.AI{}, Reads: h, Now: time.Now, ClaimsPerChecker: 1, Tokens: h, Statuses: h,
			})
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
