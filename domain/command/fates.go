package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// fateOf tells what became of a job. One that nobody had heard of when the jobs
// were asked counts as alive: it came since.
type fateOf map[string]project.Fate

func (f fateOf) job(id string) project.Fate { return f[id] }

func (f fateOf) fix(x project.Fix) project.Fate { return project.FateOf(x.JobIDs, f.job) }

// fates asks the jobs that took fixes along, and those that deploys with one of
// the keys led to.
func (s *Service) fates(ctx context.Context, cause Cause, p project.State, deployKeys []string) (fateOf, error) {
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
	now, err := s.clock(ctx, cause)
	if err != nil {
		return nil, err
	}
	fates := make(fateOf, len(since))
	for id, at := range since {
		fates[id], err = read(ctx, s.jobs, domain.JobStream(id), func(st job.State) project.Fate {
			switch {
			case st.Status == job.Completed:
				return project.Reported
			case st.Status == job.Pending, st.Status == job.Claimed, st.Status == "" && now.Sub(at) < arriving:
				return project.Alive
			}
			return project.Lost // cancelled, failed, voided, or never came
		})
		if err != nil {
			return nil, err
		}
	}
	return fates, nil
}
