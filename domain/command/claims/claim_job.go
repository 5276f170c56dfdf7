package claims

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/job"
	"humanqa/domain/repository"
	"humanqa/domain/session"
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
	type granted struct {
		ClaimedJob
		job job.State // only what the brief needs
	}
	g, written, err := repository.Execute(ctx, s.Jobs, cause, domain.JobStream(jobID),
		func(st job.State, g *granted) ([]domain.Event, error) {
			events, err := job.DecideClaim(st, checkerID, s.Now())
			if err != nil {
				return nil, err
			}
			g.ClaimedJob = claimedJob(jobID, st)
			if claimed, ok := domain.Last[*job.Claimed](events); ok {
				g.Token, g.DueAt = claimed.Token, claimed.DueAt
			}
			g.job = Briefed(st)
			return events, nil
		})
	if err != nil {
		return ClaimedJob{}, err
	}
	g.Position = written
	g.Brief, err = s.Brief(ctx, jobID, g.job)
	return g.ClaimedJob, err
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
	type live struct {
		ClaimedJob
		held bool
		job  job.State // only what the brief needs
	}
	for _, r := range taken {
		l, err := repository.Read(ctx, s.Jobs, domain.JobStream(r.JobID), func(st job.State) live {
			if st.Status != job.StatusClaimed || st.CheckerID != checkerID || hidden(st.AccountID) {
				return live{}
			}
			return live{claimedJob(r.JobID, st), true, Briefed(st)}
		})
		switch {
		case err != nil:
			return ClaimedJob{}, false, err
		case l.held:
			l.Brief, err = s.Brief(ctx, r.JobID, l.job)
			return l.ClaimedJob, true, err
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
	completed, written, err := repository.Execute(ctx, s.Jobs, domain.Cause{}, domain.JobStream(jobID),
		func(st job.State, completed *bool) ([]domain.Event, error) {
			*completed = st.Status == job.StatusCompleted && st.CheckerID == checkerID && !hidden(st.AccountID)
			return nil, nil
		})
	return written, completed, err
}

func claimedJob(jobID string, st job.State) ClaimedJob {
	draft := st.ReportItems()
	return ClaimedJob{
		JobID: jobID, AccountID: st.AccountID, ProjectID: st.ProjectID, Token: st.Token, DueAt: st.DueAt,
		SessionID: st.SessionID, Waiting: st.Waiting(),
		Checklist: draft[:len(st.Items)], Findings: draft[len(st.Items):],
	}
}

// Briefed reduces a job's state to the fields that the brief needs.
func Briefed(st job.State) job.State {
	return job.State{
		Submission: st.Submission, Credentials: st.Credentials, AccessInstructions: st.AccessInstructions,
		Questions: slices.Clone(st.Questions),
	}
}

// reserve takes one of the checker's places for the job, unless they hold its claim
// already. A job of an account the checker belongs to is not found: the checker must not
// learn that it exists.
func (s *Claims) reserve(ctx context.Context, cause domain.Cause, checkerID, jobID string) error {
	target, err := s.readClaim(ctx, jobID)
	if err != nil {
		return err
	}
	refusal, err := repository.Read(ctx, s.Jobs, domain.JobStream(jobID), func(st job.State) error {
		_, err := job.DecideClaim(st, checkerID, s.Now())
		return err
	})
	if err != nil {
		return err
	}
	hidden, err := s.HiddenFrom(ctx, checkerID)
	switch {
	case err != nil:
		return err
	case target.account == "" || hidden(target.account):
		return domain.NotFound("job")
	}
	suspended := false
	if target.claimant != checkerID { // a claimed job may be finished
		if suspended, err = s.offered(ctx, target.account, checkerID); err != nil {
			return err
		}
	}
	switch {
	case refusal == nil && suspended:
		return domain.Conflict("the job is not in the queue for now").WithHint("claim another job")
	case refusal != nil:
		return refusal // no place is held for a claim that cannot succeed
	case target.claimant == checkerID:
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
		j, err := s.readClaim(ctx, r.JobID)
		if err != nil {
			return err
		}
		live[r] = j.claimant == checkerID || j.pending && j.token == r.Token && s.Now().Sub(r.At) < reservedFor
	}
	_, err = repository.Decide(ctx, s.Checkers, cause, domain.CheckerStream(checkerID), func(st checker.State) ([]domain.Event, error) {
		return checker.DecideTake(st, checker.Reservation{JobID: jobID, Token: target.token, At: s.Now()},
			func(r checker.Reservation) bool {
				alive, seen := live[r]
				return alive || !seen // a reservation made after the look counts as alive
			}, s.PerChecker)
	})
	return err
}

// offered refuses a job of an account that keeps its tests to other checkers
// (decisions, "Pools"): it is not found. It also says whether the account is
// suspended.
func (s *Claims) offered(ctx context.Context, accountID, checkerID string) (suspended bool, err error) {
	type accountState struct {
		suspended bool
		poolID    string
	}
	of, err := repository.Read(ctx, s.Accounts, domain.AccountStream(accountID),
		func(st account.State) accountState { return accountState{st.Suspended, st.PoolID} })
	if err != nil {
		return false, err
	}
	in, err := s.InPool(ctx, of.poolID, checkerID)
	if err == nil && !in {
		err = domain.NotFound("job")
	}
	return of.suspended, err
}

// claimState is the part of a job's state that decides about a reservation.
type claimState struct {
	account  string // empty: there is no such job
	pending  bool
	claimant string // the checker that holds the claim now
	token    int
}

func (s *Claims) readClaim(ctx context.Context, jobID string) (claimState, error) {
	return repository.Read(ctx, s.Jobs, domain.JobStream(jobID), func(st job.State) claimState {
		if !st.Exists {
			return claimState{}
		}
		j := claimState{account: st.AccountID, pending: st.Status == job.StatusPending, token: st.Token}
		if st.Status == job.StatusClaimed {
			j.claimant = st.CheckerID
		}
		return j
	})
}

// Brief opens what was sealed for the claimant.
func (s *Claims) Brief(ctx context.Context, jobID string, st job.State) (Brief, error) {
	out := Brief{Title: st.Title, URL: st.URL, Description: st.Description, Feature: st.Feature}
	if err := s.briefSlot(ctx, jobID, st.SessionID, &out); err != nil {
		return Brief{}, err
	}
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
	var err error
	out.Questions, err = s.toldQuestions(ctx, jobID, st)
	return out, err
}

// briefSlot adds the checker's role in the session to a slot's brief.
func (s *Claims) briefSlot(ctx context.Context, jobID, sessionID string, brief *Brief) error {
	if sessionID == "" {
		return nil
	}
	st, err := repository.Read(ctx, s.Sessions, domain.SessionStream(sessionID), session.State.Clone)
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
