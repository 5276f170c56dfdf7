package v1

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
)

// deployedJob is the handle of a deploy's test: the one it made, or the one
// that an earlier deploy with the same key made.
type deployedJob struct {
	hostedJob
	Deduplicated bool `json:"deduplicated"`
}

// ignoredDeploy answers a platform's event that is no deployment to test.
type ignoredDeploy struct {
	Ignored bool   `json:"ignored"`
	Reason  string `json:"reason"`
}

// tryDeploy answers a dry run: what the same call would do. It writes nothing.
func (a *Handlers) tryDeploy(r *wire.Request, in command.Deploy, ignored string) (wire.Answer, error) {
	if ignored != "" {
		return wire.Reply(http.StatusOK, input.Trial(in, ignored, command.DeployTrial{}))
	}
	if err := a.deployedURL(r.Context(), r.Caller, &in.Test); err != nil {
		return wire.Answer{}, err
	}
	cause := command.Cause{AccountID: r.Caller.AccountID, Sandbox: r.Caller.Sandbox}
	would, err := a.Commands.TryDeploy(r.Context(), cause, r.Caller.ProjectID, in)
	return wire.ReplyUnless(err, http.StatusOK, input.Trial(in, "", would))
}

// deployHook is POST /v1/hooks/deploy/:token. The token in the path is the credential
// (admit.Gate).
func (a *Handlers) deployHook(r *wire.Request) (wire.Answer, error) {
	if err := a.signedByPlatform(r); err != nil {
		return wire.Answer{}, err
	}
	var p wire.Problems
	r.IdempotencyKey(&p)
	r.Content = input.DeployBody(r.Header, r.Content)
	in, target, ignored := input.Deploy(r.Header, r.OptionalObject(&p))
	query := r.Query(&p)
	dry := query.OneOf("dryRun", []string{"true", "false"}) == "true"
	if ignored != "" && p.Err() == nil && !dry {
		return wire.Reply(http.StatusAccepted, ignoredDeploy{Ignored: true, Reason: ignored})
	}
	in.Test.AccessInstructions = input.Bypass(query)
	err := a.Limits.Admitted(r, &p, target)
	if dry && err == nil {
		return a.tryDeploy(r, in, ignored)
	}
	return a.Writer.WriteUnless(err, r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		// Within the command, so that a stored answer is repeated even if the settings
		// have changed.
		if err := a.deployedURL(ctx, r.Caller, &in.Test); err != nil {
			return wire.Answer{}, err
		}
		r.Asked = append(r.Asked, in.Test.Submission)
		out, err := a.Commands.Deploy(ctx, cause, r.Caller.ProjectID, in)
		status := http.StatusCreated
		if out.Deduplicated {
			status = http.StatusOK
		}
		body := deployedJob{hostedJob: a.hostedJob(in.Test, out), Deduplicated: out.Deduplicated}
		return a.Writer.Done(ctx, r, out.Position, err, status, body)
	})
}

// deployedURL falls back to the project's own address, which is checked again, because the
// account may no longer be allowed to test it.
func (a *Handlers) deployedURL(ctx context.Context, c wire.Caller, test *command.HostedTest) error {
	if test.URL == "" {
		project, err := a.Reads.Projects.Get(ctx, c.AccountID, c.ProjectID)
		if err != nil {
			return err
		}
		var p wire.Problems
		target, err := input.OwnTarget(ctx, &p, a.Reads, project, test)
		if err == nil {
			err = a.Limits.Admit(ctx, c, &p, target)
		}
		if err != nil {
			return err
		}
	}
	a.Limits.Place(test)
	return nil
}
