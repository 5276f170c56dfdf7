package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"humanqa/domain"
	"humanqa/domain/checker"
	"humanqa/domain/job"
)

// ClaimJob gives the checker a pending job. The log is the judge: of many who
// claim at once one gets the job, the others a conflict. A repeat by the
// claimant answers the same claim.
//
// The place among the checker's claims is reserved first, the job second: a
// crash in between leaves a reservation that the next claim finds void.
func (s *Service) ClaimJob(ctx context.Context, cause Cause, checkerID, jobID string) (ClaimedJob, error) {
	var sealed job.State
	if err := s.claimable(ctx, checkerID, jobID); err != nil {
		return ClaimedJob{}, err
	}
	if err := s.reserve(ctx, cause, checkerID, jobID); err != nil {
		return ClaimedJob{}, err
	}
	out := ClaimedJob{JobID: jobID}
	written, err := s.jobs.execute(ctx, cause, domain.JobStream(jobID), func(st job.State) ([]domain.Event, error) {
		events, err := job.DecideClaim(st, checkerID, s.Now())
		if err != nil {
			return nil, err
		}
		out.Token, out.DueAt = st.Token, st.DueAt
		for _, e := range events {
			if claimed, ok := e.(*job.ClaimedBy); ok {
				out.Token, out.DueAt = claimed.Token, claimed.DueAt
			}
		}
		out.Checklist = st.Items
		sealed = job.State{
			AccountID: st.AccountID, Title: st.Title, URL: st.URL, Description: st.Description, Feature: st.Feature,
			Credentials: st.Credentials, AccessInstructions: st.AccessInstructions,
		}
		return events, nil
	})
	if err != nil {
		return ClaimedJob{}, err
	}
	out.Position = written.Position
	out.Brief, err = s.brief(ctx, jobID, sealed)
	return out, err
}

// claimable refuses what a checker must not even know of: a job of an account
// they belong to is not found.
func (s *Service) claimable(ctx context.Context, checkerID, jobID string) error {
	var accountID string
	_, err := s.jobs.read(ctx, domain.JobStream(jobID), func(st job.State) {
		if st.Exists {
			accountID = st.AccountID
		}
	})
	if err != nil {
		return err
	}
	own := false
	_, err = s.checkers.read(ctx, domain.CheckerStream(checkerID), func(st checker.State) {
		own = slices.Contains(st.Accounts, accountID)
	})
	if err != nil {
		return err
	}
	if accountID == "" || own {
		return domain.NotFound("job")
	}
	return nil
}

// reserve takes one of the checker's places for the job. Which of the places
// held are still live is asked of the jobs themselves.
func (s *Service) reserve(ctx context.Context, cause Cause, checkerID, jobID string) error {
	var held []string
	_, err := s.checkers.read(ctx, domain.CheckerStream(checkerID), func(st checker.State) {
		held = slices.Clone(st.Held)
	})
	if err != nil {
		return err
	}
	live := make(map[string]bool, len(held))
	for _, id := range held {
		_, err := s.jobs.read(ctx, domain.JobStream(id), func(st job.State) {
			live[id] = st.Status == job.Claimed && st.CheckerID == checkerID
		})
		if err != nil {
			return err
		}
	}
	_, err = s.checkers.execute(ctx, cause, domain.CheckerStream(checkerID), func(st checker.State) ([]domain.Event, error) {
		// A reservation that appeared since we looked counts as live.
		return checker.DecideTake(st, jobID, func(id string) bool {
			alive, seen := live[id]
			return alive || !seen
		}, s.ClaimsPerChecker)
	})
	return err
}

// brief opens what was sealed for the claimant.
func (s *Service) brief(ctx context.Context, jobID string, st job.State) (Brief, error) {
	out := Brief{Title: st.Title, URL: st.URL, Description: st.Description, Feature: st.Feature}
	stream := domain.JobStream(jobID)
	if st.Credentials != "" {
		plain, err := s.Sealer.Unseal(ctx, st.AccountID, stream, st.Credentials)
		if err != nil {
			return Brief{}, fmt.Errorf("unseal credentials of %s: %w", stream, err)
		}
		out.Credentials = new(Credentials)
		if err := json.Unmarshal(plain, out.Credentials); err != nil {
			return Brief{}, fmt.Errorf("decode credentials of %s: %w", stream, err)
		}
	}
	if st.AccessInstructions != "" {
		plain, err := s.Sealer.Unseal(ctx, st.AccountID, stream, st.AccessInstructions)
		if err != nil {
			return Brief{}, fmt.Errorf("unseal access instructions of %s: %w", stream, err)
		}
		out.AccessInstructions = string(plain)
	}
	return out, nil
}
