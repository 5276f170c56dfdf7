package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// Deploy submits the test of a deploy, once for each of its keys while the job lives. The
// project's stream decides between two simultaneous calls: one records the id of its job.
// The other makes the same job, or finds it.
func (s *Service) Deploy(ctx context.Context, cause Cause, projectID string, in Deploy) (HostedJob, error) {
	in.Test.ProjectID, in.Test.Source = projectID, "deploy"
	living := ""
	out, err := again(ctx, s, cause, func(cause Cause) (out HostedJob, err error) {
		out, living, err = s.testHosted(ctx, cause, ownJob(cause), in.Test, in.Keys)
		return out, err
	})
	if err != nil || living == "" {
		return out, err
	}
	cause.AskedAt = time.Time{} // this call does not know when the earlier one was requested
	out, _, err = s.testHosted(ctx, cause, living, in.Test, in.Keys)
	if domain.IsKind(err, domain.KindConflict) {
		// An earlier call paid for the job at another price, and is about to create it.
		return HostedJob{}, domain.Conflict("a deploy with this key is being submitted").WithHint("send the same request again in a moment")
	}
	out.Deduplicated, out.CreditsDeducted = true, 0
	return out, err
}

// DeployTrial says what a deploy would do. LivingID is the job that an earlier deploy led
// to; empty: a test would be made, at that price.
type DeployTrial struct {
	LivingID string
	Type     job.Type
	Estimate
}

// TryDeploy tells what Deploy would do, and writes nothing.
func (s *Service) TryDeploy(ctx context.Context, cause Cause, projectID string, in Deploy) (trial DeployTrial, err error) {
	in.Test.ProjectID = projectID
	to, err := s.findProject(ctx, cause, in.Test)
	if err != nil {
		return trial, err
	}
	outcomes, err := s.readOutcomes(ctx, cause, to.state, in.Keys)
	if err != nil {
		return trial, err
	}
	if trial.LivingID = livingDeploy(to.state, in.Keys, "", outcomes); trial.LivingID != "" {
		return trial, nil
	}
	if trial.Type, _, _, err = s.readHistory(ctx, cause, in.Test, to); err != nil {
		return trial, err
	}
	trial.Estimate, err = s.EstimateJob(ctx, cause, SubmitJob{Submission: job.Submission{
		ProjectID: projectID, Type: trial.Type, Urgent: in.Test.Urgent,
	}})
	return trial, err
}

// livingDeploy is the newest job that a deploy with one of the keys led to and that has
// not ended. A platform's deployment has one job for good, unless that one ended without
// a report. There is none if the project has already recorded this command's own job.
func livingDeploy(p project.State, keys []string, own string, outcomes jobOutcomes) string {
	deploys := p.DeploysOf(keys)
	if slices.ContainsFunc(deploys, func(d project.DeployReceived) bool { return d.JobID == own }) {
		return ""
	}
	for _, d := range deploys {
		deployment := slices.ContainsFunc(keys, func(k string) bool {
			return strings.HasPrefix(k, project.DeploymentKey) && slices.Contains(d.Keys, k)
		})
		if o := outcomes.job(d.JobID); o == project.Alive || deployment && o == project.Reported {
			return d.JobID
		}
	}
	return ""
}
