package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

const defaultSLAMinutes = 60

// briefedFailures bounds the open failures of the project that the writer of a checklist
// gets.
const briefedFailures = 20

// newJob is a job to submit, with the fields that only the service sets.
type newJob struct {
	SubmitJob
	// Prepared are the ids of the prepared fixes that Regressions verify.
	Prepared []string
	// GeneratedBy is the author of Items if it is not the client.
	GeneratedBy string
	// Regressions open the list, with their own keys and origins. Another item with one
	// of these keys is left out.
	Regressions []job.Item
	// Free says that the test makes good another one: it costs nothing.
	Free bool
	// DefaultSLA holds where the submission names none, in minutes; 0: defaultSLAMinutes.
	DefaultSLA int
}

// price is what the test costs.
func (in newJob) price() domain.Credits {
	if in.Free {
		return 0
	}
	return in.Type.Price(in.Urgent)
}

// chargeAndOpen charges the account and opens the job: money before the job, so that
// a crash in between leaves a charge to settle, never a job without one. The
// id must derive from the command; the same command submits the same job once.
func (s *Service) chargeAndOpen(ctx context.Context, cause Cause, jobID string, in newJob) (SubmittedJob, error) {
	if in.Wait && !s.AI.Instant() {
		// No list is written for a job that the account cannot pay for.
		if err := s.ledger.CheckFunds(ctx, cause, credits.Charge{JobID: jobID, Amount: in.price()}); err != nil {
			return SubmittedJob{}, err
		}
	}
	created, err := s.draftJob(ctx, cause, in)
	if err != nil {
		return SubmittedJob{}, err
	}
	if err := s.sealSecrets(ctx, &created, jobID, in.SubmitJob); err != nil {
		return SubmittedJob{}, err
	}
	remaining, err := s.ledger.Debit(ctx, cause, credits.Charge{JobID: jobID, Amount: created.Price})
	if err != nil {
		return SubmittedJob{}, err
	}
	tell, err := s.holdToken(ctx, cause, in.CommitStatus, []string{jobID}, created.CreatedAt)
	if err != nil {
		return SubmittedJob{}, err
	}
	handle, err := s.openJob(ctx, cause, jobID, created, tell)
	handle.CreditsRemaining = remaining
	return handle, err
}

// draftJob makes the event, without the secrets that are sealed under the job's id. If
// there are no items, it has the checklist written now, or leaves it to WriteChecklist if
// that takes long and the client does not wait. An AI review makes its own list.
func (s *Service) draftJob(ctx context.Context, cause Cause, in newJob) (job.Created, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return job.Created{}, err
	}
	in.SLAMinutes = cmp.Or(in.SLAMinutes, in.DefaultSLA, defaultSLAMinutes)
	created := job.Created{
		Submission: in.Submission, Prepared: in.Prepared, GeneratedBy: in.GeneratedBy, CreatedAt: now,
	}
	created.AccountID, created.Sandbox, created.Price = cause.AccountID, cause.Sandbox, in.price()
	items := in.Items
	switch {
	case len(items) > 0 || in.Type.Automatic():
	case !s.AI.Instant() && !in.Wait:
		created.Regressions = in.Regressions
		return created, nil
	default:
		if items, created.GeneratedBy, err = s.composeChecklist(ctx, created.Submission, in.Regressions); err != nil {
			return job.Created{}, err
		}
	}
	if items, err = s.keepKeys(ctx, cause.AccountID, in.ProjectID, items); err != nil {
		return job.Created{}, err
	}
	created.Items = checklist(in.Regressions, items)
	return created, nil
}

// composeChecklist has the rest of a checklist written, behind the items that open it. It
// is never empty, because a job without a list counts as waiting for its list.
func (s *Service) composeChecklist(ctx context.Context, of job.Submission, opening []job.Item) ([]NewItem, string, error) {
	brief := ChecklistBrief{Submission: of, Opening: opening}
	var err error
	if of.ProjectID != "" {
		if brief.Failures, err = s.Reads.OpenFailures(ctx, of.AccountID, of.ProjectID, briefedFailures); err != nil {
			return nil, "", domain.Unavailable(fmt.Errorf("open failures of project %s: %w", of.ProjectID, err))
		}
	}
	items, by, err := s.AI.Checklist(ctx, brief)
	if err == nil && len(items) == 0 {
		err = errors.New("the list is empty")
	}
	if err != nil {
		return nil, "", domain.Unavailable(fmt.Errorf("write checklist: %w", err))
	}
	return items, by, nil
}

// keepKeys gives items without a key the one by which older versions made them known to
// their project. A key of another text, which older versions took for the same, stays
// with that text.
func (s *Service) keepKeys(ctx context.Context, accountID, projectID string, items []NewItem) ([]NewItem, error) {
	var older []string
	for _, it := range items {
		if it.Key == "" {
			older = append(older, job.OlderKeys(it.Description)...)
		}
	}
	if projectID == "" || len(older) == 0 {
		return items, nil
	}
	known, err := s.Reads.KnownKeys(ctx, accountID, projectID, older)
	if err != nil {
		return nil, domain.Unavailable(fmt.Errorf("keys of project %s: %w", projectID, err))
	}
	items = slices.Clone(items)
	for i, it := range items {
		older, now := job.OlderKeys(it.Description), job.KeyFor(it.Description)
		for _, key := range older {
			text, is := known[key]
			unchanged := text == "" && slices.Contains(older, now) // it never failed, so its text is not known
			if is && items[i].Key == "" && (unchanged || text == domain.ErasedText || job.KeyFor(text) == now) {
				items[i].Key = key
			}
		}
	}
	return items, nil
}

// checklist puts the regressions before the items, each key once, and numbers
// them all.
func checklist(regressions []job.Item, items []NewItem) []job.Item {
	out := make([]job.Item, 0, len(regressions)+len(items))
	known := make(map[string]bool, len(regressions))
	for _, r := range regressions {
		if !known[r.Key] {
			known[r.Key] = true
			out = append(out, r)
		}
	}
	for _, it := range items {
		key := cmp.Or(it.Key, job.KeyFor(it.Description))
		older := func(key string) bool { return known[key] }
		if !known[key] && (it.Key != "" || !slices.ContainsFunc(job.OlderKeys(it.Description), older)) {
			out = append(out, it)
		}
	}
	out = job.UniqueKeys(out)
	for i := range out {
		out[i].ID = fmt.Sprintf("item-%d", i+1)
	}
	return out
}

// sealSecrets seals the secrets for the claimant into the event, bound to the job's
// stream.
func (s *Service) sealSecrets(ctx context.Context, created *job.Created, jobID string, in SubmitJob) error {
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

// errGivenBack refuses a submission that came too late for its charge.
var errGivenBack = domain.Conflict("the submission was abandoned and its charge given back").
	WithHint("submit again, with a new Idempotency-Key")

// openJob creates the job of a charge that was made. The answer leaves out the account's
// available amount. An existing job is a repeat, and gives the answer for the first
// submission.
func (s *Service) openJob(
	ctx context.Context, cause Cause, jobID string, created job.Created, tell *job.CommitStatusRequested,
) (SubmittedJob, error) {
	st, written, err := repository.Create(ctx, s.Jobs, cause, domain.JobStream(jobID), func(st job.State) ([]domain.Event, error) {
		switch {
		case st.Status == job.StatusVoided:
			return nil, errGivenBack
		case st.Exists:
			return nil, nil
		}
		return job.DecideCreate(st, created, tell)
	}, job.State.Clone)
	if err != nil {
		return SubmittedJob{}, fmt.Errorf("submit job %s: %w", jobID, err)
	}
	handle := submittedAs(jobID, st)
	handle.Status, handle.Position = job.StatusPending, written
	return handle, nil
}

// submittedAs is the handle of a job, without the account's available amount.
func submittedAs(jobID string, st job.State) SubmittedJob {
	return SubmittedJob{
		JobID: jobID, Status: st.Status, EstimatedMinutes: estimate(st.SLAMinutes, st.Urgent),
		CreditsDeducted: st.Price, ChecklistItemCount: len(st.Items),
	}
}
