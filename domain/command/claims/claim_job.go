package claims

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"humanqa/domain"
	"humanqa/domain/checker"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// reservedFor bounds a reservation for a claim that has not reached its job. It is
// longer than any append may take. So a crash between the two writes blocks the
// checker's place only that long.
const reservedFor = 2 * repository.AppendTimeout

// ClaimJob gives the checker a pending job. The log decides between simultaneous claims:
// one gets the job, and the others get a conflict. A repeat by the claimant answers the
// same claim.
//
// The place among the checker's claims is reserved first, the job second: a
// crash in between leaves a reservation that a later claim finds void.
func (s *Claims) ClaimJob(ctx context.Context, cause domain.Cause, checkerID, jobID string) (ClaimedJob, error) {
	if err := s.reserve(ctx, cause, checkerID, jobID); err != nil {
		return ClaimedJob{}, err
	}
	st, written, err := repository.Execute(ctx, s.Jobs, cause, domain.JobStream(jobID), func(st job.State) ([]domain.Event, error) {
		return job.DecideClaim(st, checkerID, s.now())
	}, job.State.Clone)
	if err != nil {
		return ClaimedJob{}, err
	}
	claim, err := s.claimed(ctx, jobID, st)
	claim.Position = written
	return claim, err
}

// LiveClaim gives the claim that the checker holds, with its current draft; held is false
// when there is none. With several claims it gives the oldest. A claim on a job that is
// hidden from the checker by now does not count.
func (s *Claims) LiveClaim(ctx context.Context, checkerID string) (claim ClaimedJob, held bool, err error) {
	hidden, err := s.HiddenFrom(ctx, checkerID)
	if err != nil {
		return ClaimedJob{}, false, err
	}
	taken, err := repository.Read(ctx, s.Checkers, domain.CheckerStream(checkerID),
		func(st checker.State) []checker.Reservation { return st.Held })
	if err != nil {
		return ClaimedJob{}, false, err
	}
	for _, r := range taken {
		st, err := s.Job(ctx, r.JobID)
		switch {
		case err != nil:
			return ClaimedJob{}, false, err
		case st.ClaimedBy(checkerID) && !hidden(st.AccountID):
			claim, err = s.claimed(ctx, r.JobID, st)
			return claim, true, err
		}
	}
	return ClaimedJob{}, false, nil
}

// CompletedBy says whether the checker has completed the job. at is the position that a
// read model must have applied to show it.
func (s *Claims) CompletedBy(ctx context.Context, checkerID, jobID string) (at domain.Position, completed bool, err error) {
	hidden, err := s.HiddenFrom(ctx, checkerID)
	if err != nil {
		return domain.Position{}, false, err
	}
	completed, at, err = repository.Execute(ctx, s.Jobs, domain.Cause{}, domain.JobStream(jobID),
		func(job.State) ([]domain.Event, error) { return nil, nil },
		func(st job.State) bool {
			return st.Status == job.StatusCompleted && st.CheckerID == checkerID && !hidden(st.AccountID)
		})
	return at, completed, err
}

// claimed is the claim on the job.
func (s *Claims) claimed(ctx context.Context, jobID string, st job.State) (ClaimedJob, error) {
	draft := st.ReportItems()
	brief, err := s.brief(ctx, jobID, st)
	return ClaimedJob{
		JobID: jobID, AccountID: st.AccountID, ProjectID: st.ProjectID, Token: st.Token, DueAt: st.DueAt,
		SessionID: st.SessionID, Waiting: st.Waiting(), Brief: brief,
		Checklist: draft[:len(st.Items)], Findings: draft[len(st.Items):],
	}, err
}

// reserve takes one of the checker's places for the job, unless they hold its claim
// already. A job of an account the checker belongs to is not found: the checker must not
// learn that it exists.
func (s *Claims) reserve(ctx context.Context, cause domain.Cause, checkerID, jobID string) error {
	target, err := s.Job(ctx, jobID)
	if err != nil {
		return err
	}
	_, refusal := job.DecideClaim(target, checkerID, s.now())
	hidden, err := s.HiddenFrom(ctx, checkerID)
	switch {
	case err != nil:
		return err
	case !target.Exists || hidden(target.AccountID):
		return domain.NotFound("job")
	}
	suspended := false
	if !target.ClaimedBy(checkerID) { // a claimed job may be finished
		if suspended, err = s.offered(ctx, target.AccountID, checkerID); err != nil {
			return err
		}
	}
	switch {
	case refusal == nil && suspended:
		return domain.Conflict("the job is not in the queue for now").WithHint("claim another job")
	case refusal != nil:
		return refusal // no place is held for a claim that cannot succeed
	case target.ClaimedBy(checkerID):
		return nil
	}
	// The jobs themselves tell which places are taken.
	held, err := repository.Read(ctx, s.Checkers, domain.CheckerStream(checkerID),
		func(st checker.State) []checker.Reservation { return st.Held })
	if err != nil {
		return err
	}
	live := make(map[checker.Reservation]bool, len(held))
	for _, r := range held {
		j, err := s.Job(ctx, r.JobID)
		if err != nil {
			return err
		}
		live[r] = j.ClaimedBy(checkerID) || j.Status == job.StatusPending && j.Token == r.Token && s.now().Sub(r.At) < reservedFor
	}
	_, err = repository.Decide(ctx, s.Checkers, cause, domain.CheckerStream(checkerID), func(st checker.State) ([]domain.Event, error) {
		return checker.DecideTake(st, checker.Reservation{JobID: jobID, Token: target.Token, At: s.now()},
			func(r checker.Reservation) bool {
				alive, seen := live[r]
				return alive || !seen // a reservation made after the look counts as alive
			}, s.perChecker)
	})
	return err
}

// offered refuses a job of an account that keeps its tests to other checkers
// (decisions, "Pools"): it is not found. It also says whether the account is
// suspended.
func (s *Claims) offered(ctx context.Context, accountID, checkerID string) (suspended bool, err error) {
	of, err := s.Account(ctx, accountID)
	if err != nil {
		return false, err
	}
	in, err := s.InPool(ctx, of.PoolID, checkerID)
	if err == nil && !in {
		err = domain.NotFound("job")
	}
	return of.Suspended, err
}

// brief is the brief with its secrets closed.
func (s *Claims) brief(ctx context.Context, jobID string, st job.State) (Brief, error) {
	out := Brief{
		Title: st.Title, URL: st.URL, Description: st.Description, Feature: st.Feature,
		HasSecrets: st.Credentials != "" || st.AccessInstructions != "",
	}
	for _, q := range st.Questions {
		out.Questions = append(out.Questions, ToldQuestion{Question: q})
		out.HasSecrets = out.HasSecrets || q.HasSecret
	}
	return out, s.briefSlot(ctx, jobID, st.SessionID, &out)
}

// Reveal opens the secrets of the claim's brief. The log says before that the claimant
// was shown them (decisions, "Secrets seen"): without that event nothing is opened.
func (s *Claims) Reveal(ctx context.Context, cause domain.Cause, claim Claim) (out Brief, at domain.Position, err error) {
	target, err := s.Job(ctx, claim.JobID)
	if err != nil {
		return Brief{}, at, err
	}
	pseudonym, err := s.Pseudonym(ctx, target.AccountID, claim.CheckerID)
	if err != nil {
		return Brief{}, at, err
	}
	cause.Actor, cause.AccountID = "checker:"+claim.CheckerID, target.AccountID // no export names a person that tests
	st, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) {
		return job.DecideShowSecrets(st, claim.CheckerID, claim.Token, pseudonym, s.now())
	})
	if err != nil {
		return Brief{}, at, err
	}
	if out, err = s.brief(ctx, claim.JobID, st); err == nil {
		err = s.OpenSecrets(ctx, claim.JobID, st, &out)
	}
	return out, at, err
}

// pseudonymDigits is how many hexadecimal digits a checker's pseudonym has.
const pseudonymDigits = 4

// Pseudonym names a checker to the people of an account: always the same there, and another
// name in each other account.
func (s *Claims) Pseudonym(ctx context.Context, accountID, checkerID string) (string, error) {
	known, err := s.sealer.Fingerprint(ctx, accountID, "checker", []byte(checkerID))
	if err != nil {
		return "", fmt.Errorf("the pseudonym of checker %s: %w", checkerID, err)
	}
	return strings.ToUpper(known[:pseudonymDigits]), nil
}

// OpenSecrets opens the job's secrets into the brief.
func (s *Claims) OpenSecrets(ctx context.Context, jobID string, st job.State, out *Brief) error {
	credentials, err := s.unseal(ctx, jobID, st, "the credentials", st.Credentials)
	if err != nil {
		return err
	}
	if credentials != "" {
		out.Credentials = new(Credentials)
		if err := json.Unmarshal([]byte(credentials), out.Credentials); err != nil {
			return fmt.Errorf("decode the credentials of job %s: %w", jobID, err)
		}
	}
	if out.AccessInstructions, err = s.unseal(ctx, jobID, st, "the access instructions", st.AccessInstructions); err != nil {
		return err
	}
	for i, q := range out.Questions {
		if out.Questions[i].Secret, err = s.unseal(ctx, jobID, st, "the answer to question "+q.ID, q.Sealed); err != nil {
			return err
		}
	}
	return nil
}

// unseal opens a secret of the job; empty: there is none.
func (s *Claims) unseal(ctx context.Context, jobID string, st job.State, what, sealed string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	plain, err := s.sealer.Unseal(ctx, st.AccountID, domain.JobStream(jobID), sealed)
	if err != nil {
		return "", fmt.Errorf("unseal %s of job %s: %w", what, jobID, err)
	}
	return string(plain), nil
}

// briefSlot adds the checker's role in the session to a slot's brief.
func (s *Claims) briefSlot(ctx context.Context, jobID, sessionID string, brief *Brief) error {
	if sessionID == "" {
		return nil
	}
	st, err := s.Session(ctx, sessionID)
	if err != nil {
		return err
	}
	brief.ScenarioBrief = st.ScenarioBrief
	for _, slot := range st.Slots {
		if slot.JobID == jobID {
			brief.RoleLabel = slot.RoleLabel
		}
	}
	return nil
}
