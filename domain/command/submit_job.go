package command

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

const defaultSLAMinutes = 60

// SubmitJob charges the account and submits the job. It fails with
// InsufficientCredits, or NotFound for a project that is not the account's;
// nothing is written then. The same command submits the same job once.
func (s *Service) SubmitJob(ctx context.Context, cause Cause, in SubmitJob) (SubmittedJob, error) {
	if in.ProjectID != "" {
		if err := s.inherit(ctx, cause.AccountID, &in); err != nil {
			return SubmittedJob{}, err
		}
	}
	if in.SLAMinutes == 0 {
		in.SLAMinutes = defaultSLAMinutes
	}
	created, err := s.draft(ctx, cause, in)
	if err != nil {
		return SubmittedJob{}, err
	}
	jobID := domain.DeriveID(cause.CommandID, "job").String()
	if err := s.seal(ctx, &created, jobID, in); err != nil {
		return SubmittedJob{}, err
	}
	remaining, err := s.debit(ctx, cause, jobID, created.Price)
	if err != nil {
		return SubmittedJob{}, err
	}
	_, written, err := create(ctx, s.jobs, cause, domain.JobStream(jobID), func(st job.State, _ *none) ([]domain.Event, error) {
		switch {
		case st.Status == job.Voided:
			return nil, domain.Conflict("the submission was abandoned and its charge given back").
				WithHint("submit again, with a new Idempotency-Key")
		case st.Exists:
			return nil, nil // the id derives from the command: a repeat
		}
		return job.DecideCreate(st, created)
	})
	if err != nil {
		return SubmittedJob{}, fmt.Errorf("submit job %s: %w", jobID, err)
	}
	return SubmittedJob{
		JobID: jobID, Status: job.Pending,
		EstimatedMinutes: estimate(created.SLAMinutes, created.Urgent),
		CreditsDeducted:  created.Price, CreditsRemaining: remaining,
		ChecklistItemCount: len(created.Items),
		Position:           written.Position,
	}, nil
}

// inherit checks that the project is the account's and fills in its defaults.
func (s *Service) inherit(ctx context.Context, accountID string, in *SubmitJob) error {
	type defaults struct {
		found      bool
		slaMinutes int
	}
	p, err := read(ctx, s.projects, domain.ProjectStream(in.ProjectID), func(p project.State) defaults {
		d := defaults{found: p.Exists && p.AccountID == accountID}
		if p.DefaultSLAMinutes != nil {
			d.slaMinutes = *p.DefaultSLAMinutes
		}
		return d
	})
	switch {
	case err != nil:
		return err
	case !p.found:
		return domain.NotFound("project")
	case in.SLAMinutes == 0:
		in.SLAMinutes = p.slaMinutes
	}
	return nil
}

// draft writes the event, but for what is sealed under the job's id.
func (s *Service) draft(ctx context.Context, cause Cause, in SubmitJob) (job.Created, error) {
	items, by := in.Items, ""
	if len(items) == 0 {
		var err error
		items, by, err = s.AI.Checklist(ctx, ChecklistBrief{
			Type: in.Type, URL: in.URL, Title: in.Title, Description: in.Description, Feature: in.Feature,
		})
		if err != nil {
			return job.Created{}, fmt.Errorf("write checklist: %w", err)
		}
	}
	return job.Created{
		AccountID: cause.AccountID, ProjectID: in.ProjectID,
		URL: in.URL, Title: in.Title, Description: in.Description, Feature: in.Feature,
		Type: in.Type, TypeEcho: in.TypeEcho, Urgent: in.Urgent, SLAMinutes: in.SLAMinutes,
		Price: Price(in.Type, in.Urgent), Source: in.Source, ParentID: in.ParentID,
		Target: in.Target, Items: checklist(items), GeneratedBy: by, CreatedAt: s.Now(),
	}, nil
}

// checklist numbers the items and gives each its key, unique in the list.
func checklist(items []NewItem) []job.Item {
	out := make([]job.Item, len(items))
	for i, it := range items {
		out[i] = job.Item{
			ID: fmt.Sprintf("item-%d", i+1), Key: it.Key,
			Description: it.Description, ExpectedOutcome: it.ExpectedOutcome, Severity: it.Severity,
		}
	}
	return job.UniqueKeys(out)
}

func (s *Service) seal(ctx context.Context, created *job.Created, jobID string, in SubmitJob) error {
	stream := domain.JobStream(jobID)
	if in.Credentials != nil {
		plain, err := json.Marshal(in.Credentials)
		if err != nil {
			return fmt.Errorf("encode credentials: %w", err)
		}
		if created.Credentials, err = s.Sealer.Seal(ctx, created.AccountID, stream, plain); err != nil {
			return fmt.Errorf("seal credentials: %w", err)
		}
	}
	if in.AccessInstructions != "" {
		var err error
		created.AccessInstructions, err = s.Sealer.Seal(ctx, created.AccountID, stream, []byte(in.AccessInstructions))
		if err != nil {
			return fmt.Errorf("seal access instructions: %w", err)
		}
	}
	return nil
}

// debit charges the account for a job, once, and says what is left.
func (s *Service) debit(ctx context.Context, cause Cause, jobID string, price domain.Credits) (remaining domain.Credits, err error) {
	remaining, _, err = s.onLedger(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
		return credits.DecideDebit(st, jobID, price, now)
	})
	return remaining, err
}

// onLedger runs a command on the account's ledger and says what is available
// after it.
func (s *Service) onLedger(
	ctx context.Context, cause Cause, decide func(credits.State, time.Time) ([]domain.Event, error),
) (domain.Credits, domain.Position, error) {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return 0, domain.Position{}, err
	}
	available, written, err := execute(ctx, s.ledgers, cause, domain.CreditsStream(cause.AccountID),
		func(st credits.State, available *domain.Credits) ([]domain.Event, error) {
			events, err := decide(st, now)
			*available = balanceAfter(st, events, now)
			return events, err
		})
	return available, written.Position, err
}

// balanceAfter is what the account has left after the events; without any,
// what it has now.
func balanceAfter(st credits.State, events []domain.Event, now time.Time) domain.Credits {
	if len(events) == 0 {
		return st.Available(now)
	}
	switch e := events[len(events)-1].(type) {
	case *credits.Granted:
		return e.BalanceAfter
	case *credits.Debited:
		return e.BalanceAfter
	case *credits.Refunded:
		return e.BalanceAfter
	case *credits.LotExpired:
		return e.BalanceAfter
	}
	return st.Available(now)
}
