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
	in.CheckerID, in.Token = claim.CheckerID, claim.Token
	return Run(ctx, s, cause, claim, func(st job.State, item *job.ReportItem) ([]domain.Event, error) {
		in.At = s.Now()
		events, err := job.DecideCheckItem(st, in)
		*item = checkedBy(st, in.ItemID, events)
		return events, err
	})
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
	in.CheckerID, in.Token, in.At = claim.CheckerID, claim.Token, s.Now()
	return Run(ctx, s, cause, claim, func(st job.State, left *Hidden) ([]domain.Event, error) {
		*left = Hidden{AccountID: st.AccountID}
		for _, i := range st.ReportItems() {
			left.Shown = left.Shown || i.ID != in.ItemID && slices.Contains(i.Screenshots(), in.Screenshot)
		}
		return job.DecideShow(st, in)
	})
}

// checkedBy is the item of the draft as the events leave it. The state is not
// folded: it belongs to the repository.
func checkedBy(st job.State, itemID string, events []domain.Event) job.ReportItem {
	item, _ := st.ReportItem(itemID)
	if checked, ok := domain.Last[*job.ItemChecked](events); ok {
		for _, listed := range st.Items { // with its own severity
			if listed.ID == itemID {
				item.Item = listed
			}
		}
		if checked.Severity != "" {
			item.Severity = checked.Severity
		}
		item.Status, item.Note, item.Reason = checked.Status, checked.Note, checked.Reason
		item.ScreenshotURL, item.MoreScreenshotURLs = checked.ScreenshotURL, checked.MoreScreenshotURLs
	}
	return item
}

// AddFinding records a finding of the claimant outside the list. Its id derives from the
// command. The claim and the time are filled in here.
func (s *Claims) AddFinding(ctx context.Context, cause domain.Cause, claim Claim, in job.Finding) (job.ReportItem, domain.Position, error) {
	in.CheckerID, in.Token, in.At = claim.CheckerID, claim.Token, s.Now()
	in.Item.ID = domain.DeriveID(cause.CommandID, "finding").String()
	return Run(ctx, s, cause, claim, func(st job.State, item *job.ReportItem) ([]domain.Event, error) {
		events, err := job.DecideAddFinding(st, in)
		for _, known := range st.Findings {
			if known.ID == in.Item.ID {
				*item = known // a repeat
			}
		}
		if added, ok := domain.Last[*job.FindingAdded](events); ok {
			*item = job.ReportItem{Item: added.Item, Status: added.Status, Note: added.Note}
		}
		return events, err
	})
}

// EditFinding replaces the content of a finding of the draft. A missing finding is not
// found. The claim, the id and the time are filled in here.
func (s *Claims) EditFinding(
	ctx context.Context, cause domain.Cause, claim Claim, findingID string, in job.Finding,
) (job.ReportItem, domain.Position, error) {
	in.CheckerID, in.Token, in.Item.ID, in.At = claim.CheckerID, claim.Token, findingID, s.Now()
	return Run(ctx, s, cause, claim, func(st job.State, item *job.ReportItem) ([]domain.Event, error) {
		events, err := job.DecideEditFinding(st, in)
		*item, _ = st.ReportItem(findingID)
		if edited, ok := domain.Last[*job.FindingEdited](events); ok {
			*item = job.ReportItem{Item: edited.Item, Status: edited.Status, Note: edited.Note}
		}
		return events, err
	})
}

// WithdrawFinding takes a finding out of the draft.
func (s *Claims) WithdrawFinding(ctx context.Context, cause domain.Cause, claim Claim, findingID string) (domain.Position, error) {
	_, at, err := Run(ctx, s, cause, claim, func(st job.State, _ *repository.None) ([]domain.Event, error) {
		return job.DecideWithdrawFinding(st, claim.CheckerID, claim.Token, findingID, s.Now())
	})
	return at, err
}

// CompleteJob ends the claim with a report. Items without a verdict are a
// conflict that names them. The claim, the id and the time are filled in here.
func (s *Claims) CompleteJob(
	ctx context.Context, cause domain.Cause, claim Claim, in job.Completion,
) (job.Completed, domain.Position, error) {
	in.CheckerID, in.Token, in.ReportID = claim.CheckerID, claim.Token, domain.DeriveID(cause.CommandID, "report").String()
	return Run(ctx, s, cause, claim, func(st job.State, report *job.Completed) ([]domain.Event, error) {
		in.At = s.Now()
		events, err := job.DecideComplete(st, in)
		if err != nil {
			return nil, err
		}
		if st.Report != nil {
			*report = *st.Report
		}
		if completed, ok := domain.Last[*job.Completed](events); ok {
			*report = *completed
		}
		return events, nil
	})
}

// ReleaseJob puts the claimed job back into the queue; the verdicts so far
// stay as a draft for the next checker.
func (s *Claims) ReleaseJob(ctx context.Context, cause domain.Cause, claim Claim) (domain.Position, error) {
	_, at, err := Run(ctx, s, cause, claim, func(st job.State, _ *repository.None) ([]domain.Event, error) {
		return job.DecideRelease(st, claim.CheckerID, claim.Token, s.Now())
	})
	return at, err
}

// Run runs a command on a job for the holder of its claim. A job that is hidden
// from the checker is not found.
func Run[R any](
	ctx context.Context, s *Claims, cause domain.Cause, claim Claim, decide func(job.State, *R) ([]domain.Event, error),
) (R, domain.Position, error) {
	hidden, err := s.HiddenFrom(ctx, claim.CheckerID)
	if err != nil {
		return *new(R), domain.Position{}, err
	}
	return repository.Execute(ctx, s.Jobs, cause, domain.JobStream(claim.JobID),
		func(st job.State, r *R) ([]domain.Event, error) {
			if hidden(st.AccountID) {
				return nil, domain.NotFound("job")
			}
			return decide(st, r)
		})
}

// HiddenFrom lists the accounts whose jobs and sessions the checker must not see: those
// of the checker, and those of its person.
func (s *Claims) HiddenFrom(ctx context.Context, checkerID string) (func(accountID string) bool, error) {
	type known struct {
		accounts []string
		personID string
	}
	own, err := repository.Read(ctx, s.Checkers, domain.CheckerStream(checkerID), func(c checker.State) known {
		return known{slices.Clone(c.Accounts), c.PersonID}
	})
	var who person.State
	if err == nil && own.personID != "" {
		who, err = repository.Read(ctx, s.People, domain.PersonStream(own.personID), func(st person.State) person.State { return st })
	}
	return func(accountID string) bool {
		return slices.Contains(own.accounts, accountID) || who.BelongsTo(accountID)
	}, err
}
