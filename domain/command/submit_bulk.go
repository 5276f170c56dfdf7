package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// SubmitBulk submits all jobs or none: every job is drafted before anything is written,
// and all are charged by one append. After a crash between the charge and the jobs some
// jobs are missing. The same command sent again completes the batch. Without it, the
// policy refunds the missing jobs. If the command comes after that, it replaces those
// jobs by new ones.
func (s *Service) SubmitBulk(ctx context.Context, cause Cause, jobs []SubmitJob) (SubmittedBatch, error) {
	tests := make([]newJob, len(jobs))
	for i, in := range jobs {
		tests[i] = newJob{SubmitJob: in}
	}
	return s.submitAll(ctx, cause, tests)
}

func (s *Service) submitAll(ctx context.Context, cause Cause, jobs []newJob) (SubmittedBatch, error) {
	jobIDs := make([]string, len(jobs))
	for i := range jobs {
		jobIDs[i] = domain.DeriveID(cause.CommandID, fmt.Sprintf("job-%d", i)).String()
	}
	return anew(cause,
		func(charging Cause) (SubmittedBatch, error) { return s.submitBatch(ctx, cause, charging, jobIDs, jobs) },
		func(Cause) (Cause, bool, error) { return s.batchAgain(ctx, cause, jobIDs) })
}

// submitBatch submits the jobs under these ids; charging is the command that
// charges for those that are not charged yet.
func (s *Service) submitBatch(ctx context.Context, cause, charging Cause, jobIDs []string, jobs []newJob) (SubmittedBatch, error) {
	batch := SubmittedBatch{
		BatchID: domain.DeriveID(cause.CommandID, "batch").String(), JobIDs: slices.Clone(jobIDs),
	}
	if name := jobs[0].BatchName; name != "" {
		batch.Name = &name
	}
	charges := make([]credits.Charge, len(jobs))
	for i := range jobs {
		charges[i] = credits.Charge{JobID: batch.JobIDs[i], Amount: jobs[i].Type.Price(jobs[i].Urgent)}
		batch.CreditsDeducted += charges[i].Amount
	}
	drafts, err := s.draftBatch(ctx, cause, batch, jobs, charges)
	if err != nil {
		return SubmittedBatch{}, err
	}
	if batch.CreditsRemaining, err = s.ledger.Debit(ctx, charging, charges...); err != nil {
		return SubmittedBatch{}, err
	}
	tell, err := s.holdToken(ctx, cause, jobs[0].CommitStatus, batch.JobIDs, drafts[0].CreatedAt)
	if err != nil {
		return SubmittedBatch{}, err
	}
	handles := make([]SubmittedJob, len(jobs))
	err = together(len(jobs), func(i int) (err error) {
		handles[i], err = s.openJob(ctx, cause, batch.JobIDs[i], drafts[i], tell)
		return err
	})
	for _, h := range handles {
		batch.EstimatedMinutes = max(batch.EstimatedMinutes, h.EstimatedMinutes)
		batch.Position = batch.Position.Max(h.Position)
	}
	return batch, err
}

// draftBatch writes the batch's events. Nothing reaches the log.
func (s *Service) draftBatch(
	ctx context.Context, cause Cause, batch SubmittedBatch, jobs []newJob, charges []credits.Charge,
) ([]job.Created, error) {
	submissions := make([]newJob, len(jobs))
	slas := map[string]int{} // by project
	for i, in := range jobs {
		sla, known := slas[in.ProjectID]
		if !known {
			var err error
			if sla, err = s.projectSLA(ctx, cause.AccountID, in.ProjectID, batch.JobIDs...); err != nil {
				return nil, err
			}
			slas[in.ProjectID] = sla
		}
		in.BatchID, in.BatchIndex = batch.BatchID, i
		in.DefaultSLA = sla
		submissions[i] = in
	}
	if !s.AI.Instant() { // no list is written for jobs that the account cannot pay for
		if err := s.ledger.CheckFunds(ctx, cause, charges...); err != nil {
			return nil, err
		}
	}
	drafts := make([]job.Created, len(jobs))
	return drafts, together(len(jobs), func(i int) (err error) {
		if drafts[i], err = s.draftJob(ctx, cause, submissions[i]); err != nil {
			return err
		}
		return s.sealSecrets(ctx, &drafts[i], batch.JobIDs[i], jobs[i].SubmitJob)
	})
}

// together runs n steps at once and returns the error of the first failed step, in the
// steps' order.
func together(n int, step func(i int) error) error {
	var steps sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		steps.Go(func() { errs[i] = step(i) })
	}
	steps.Wait()
	return cmp.Or(errs...)
}
