package claims

import (
	"context"
	"slices"

	"humanqa/domain"
	"humanqa/domain/checker"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/repository"
)

// CheckItem records the claimant's verdict on an item of the list. A stale claim is a
// conflict; an item that is not on the list is not found. The claim and the time are
// filled in here.
func (s *Claims) CheckItem(ctx context.Context, cause domain.Cause, claim Claim, in job.Check) (job.ReportItem, domain.Position, error) {
	in.CheckerID, in.Token, in.At = claim.CheckerID, claim.Token, s.now()
	st, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) { return job.DecideCheckItem(st, in) })
	item, _ := st.ReportItem(in.ItemID)
	return item, at, err
}

// ShowScreenshot adds a picture to an item of the list, and leaves its verdict
// as it is.
func (s *Claims) ShowScreenshot(ctx context.Context, cause domain.Cause, claim Claim, itemID, screenshot string) (domain.Position, error) {
	_, at, err := s.show(ctx, cause, claim, job.Show{ItemID: itemID, Screenshot: screenshot})
	return at, err
}

// Hidden is a picture that was taken away from an item.
type Hidden struct {
	AccountID string
	Shown     bool // another item shows it
}

// HideScreenshot takes a picture away from an item of the list, and leaves its
// verdict as it is.
func (s *Claims) HideScreenshot(
	ctx context.Context, cause domain.Cause, claim Claim, itemID, screenshot string,
) (Hidden, domain.Position, error) {
	return s.show(ctx, cause, claim, job.Show{ItemID: itemID, Screenshot: screenshot, Remove: true})
}

func (s *Claims) show(ctx context.Context, cause domain.Cause, claim Claim, in job.Show) (Hidden, domain.Position, error) {
	in.CheckerID, in.Token, in.At = claim.CheckerID, claim.Token, s.now()
	st, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) { return job.DecideShow(st, in) })
	left := Hidden{AccountID: st.AccountID}
	for _, i := range st.ReportItems() {
		left.Shown = left.Shown || i.ID != in.ItemID && slices.Contains(i.Screenshots(), in.Screenshot)
	}
	return left, at, err
}

// AddFinding records a finding of the claimant outside the list. Its id derives from the
// command. The claim and the time are filled in here.
func (s *Claims) AddFinding(ctx context.Context, cause domain.Cause, claim Claim, in job.Finding) (job.ReportItem, domain.Position, error) {
	in.Item.ID = domain.DeriveID(cause.CommandID, "finding").String()
	return s.find(ctx, cause, claim, in, job.DecideAddFinding)
}

// EditFinding replaces the content of a finding of the draft. A missing finding is not
// found. The claim, the id and the time are filled in here.
func (s *Claims) EditFinding(
	ctx context.Context, cause domain.Cause, claim Claim, findingID string, in job.Finding,
) (job.ReportItem, domain.Position, error) {
	in.Item.ID = findingID
	return s.find(ctx, cause, claim, in, job.DecideEditFinding)
}

func (s *Claims) find(
	ctx context.Context, cause domain.Cause, claim Claim, in job.Finding, decide func(job.State, job.Finding) ([]domain.Event, error),
) (job.ReportItem, domain.Position, error) {
	in.CheckerID, in.Token, in.At = claim.CheckerID, claim.Token, s.now()
	st, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) { return decide(st, in) })
	item, _ := st.ReportItem(in.Item.ID)
	return item, at, err
}

// WithdrawFinding takes a finding out of the draft.
func (s *Claims) WithdrawFinding(ctx context.Context, cause domain.Cause, claim Claim, findingID string) (domain.Position, error) {
	_, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) {
		return job.DecideWithdrawFinding(st, claim.CheckerID, claim.Token, findingID, s.now())
	})
	return at, err
}

// CompleteJob ends the claim with a report. Items without a verdict are a
// conflict that names them. The claim, the id and the time are filled in here.
func (s *Claims) CompleteJob(
	ctx context.Context, cause domain.Cause, claim Claim, in job.Completion,
) (job.Completed, domain.Position, error) {
	in.CheckerID, in.Token, in.At = claim.CheckerID, claim.Token, s.now()
	in.ReportID = domain.DeriveID(cause.CommandID, "report").String()
	st, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) { return job.DecideComplete(st, in) })
	if err != nil {
		return job.Completed{}, at, err
	}
	return *st.Report, at, nil
}

// ReleaseJob puts the claimed job back into the queue; the verdicts so far
// stay as a draft for the next checker.
func (s *Claims) ReleaseJob(ctx context.Context, cause domain.Cause, claim Claim) (domain.Position, error) {
	_, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) {
		return job.DecideRelease(st, claim.CheckerID, claim.Token, s.now())
	})
	return at, err
}

// Run runs a command on a job for the holder of its claim, and gives the job after it. A
// job that is hidden from the checker is not found.
func (s *Claims) Run(
	ctx context.Context, cause domain.Cause, claim Claim, decide func(job.State) ([]domain.Event, error),
) (job.State, domain.Position, error) {
	hidden, err := s.HiddenFrom(ctx, claim.CheckerID)
	if err != nil {
		return job.State{}, domain.Position{}, err
	}
	return repository.Execute(ctx, s.Jobs, cause, domain.JobStream(claim.JobID), func(st job.State) ([]domain.Event, error) {
		if hidden(st.AccountID) {
			return nil, domain.NotFound("job")
		}
		return decide(st)
	}, job.State.Clone)
}

// HiddenFrom lists the accounts whose jobs and sessions the checker must not see: those
// of the checker, and those of its person.
func (s *Claims) HiddenFrom(ctx context.Context, checkerID string) (func(accountID string) bool, error) {
	own, err := repository.Read(ctx, s.Checkers, domain.CheckerStream(checkerID), func(st checker.State) checker.State { return st })
	var who person.State
	if err == nil && own.PersonID != "" {
		who, err = repository.Read(ctx, s.People, domain.PersonStream(own.PersonID), func(st person.State) person.State { return st })
	}
	return func(accountID string) bool {
		return slices.Contains(own.Accounts, accountID) || who.BelongsTo(accountID)
	}, err
}
