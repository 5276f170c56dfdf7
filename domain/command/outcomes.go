package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/repository"
)

// jobOutcomes has the outcomes of jobs. A job that is not in the map counts as alive: it
// was attached after the jobs were read.
type jobOutcomes map[string]project.Outcome

func (f jobOutcomes) job(id string) project.Outcome { return f[id] }

func (f jobOutcomes) fix(x project.Fix) project.Outcome { return project.OutcomeOf(x.JobIDs, f.job) }

// readOutcomes asks the jobs that took fixes along, and those that deploys with
// one of the keys led to.
func (s *Service) readOutcomes(ctx context.Context, cause Cause, p project.State, deployKeys []string) (jobOutcomes, error) {
	since := map[string]time.Time{}
	for _, f := range p.Queue {
		for _, id := range f.JobIDs {
			since[id] = f.AttachedAt
		}
	}
	for _, d := range p.DeploysOf(deployKeys) {
		since[d.JobID] = d.At
	}
	if len(since) == 0 {
		return nil, nil
	}
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return nil, err
	}
	outcomes := make(jobOutcomes, len(since))
	for id, at := range since {
		outcomes[id], err = repository.Read(ctx, s.Jobs, domain.JobStream(id), func(st job.State) project.Outcome {
			switch {
			case st.Status == job.StatusCompleted:
				return project.Reported
			case st.Status == job.StatusPending, st.Status == job.StatusClaimed, st.Status == "" && now.Sub(at) < arriving:
				return project.Alive
			}
			return project.Lost // cancelled, failed, voided, or never came
		})
		if err != nil {
			return nil, err
		}
	}
	return outcomes, nil
}
