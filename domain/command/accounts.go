package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/project"
)

// CreateAccount opens an account.
func (s *Service) CreateAccount(ctx context.Context, cause Cause, name string, sandbox bool) (string, domain.Position, error) {
	accountID := NewAccountID(cause)
	cause.AccountID = accountID
	_, written, err := create(ctx, s.accounts, cause, domain.AccountStream(accountID), func(st account.State, _ *none) ([]domain.Event, error) {
		return account.DecideCreate(st, name, sandbox)
	})
	return accountID, written.Position, err
}

// NewAccountID is the id of the account that CreateAccount opens for that cause.
func NewAccountID(cause Cause) string { return domain.DeriveID(cause.CommandID, "account").String() }

// SuspendAccount stops every key of the account.
func (s *Service) SuspendAccount(ctx context.Context, cause Cause, accountID string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		return account.DecideSuspend(st, "operator")
	})
}

// ReinstateAccount ends a suspension.
func (s *Service) ReinstateAccount(ctx context.Context, cause Cause, accountID string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, account.DecideReinstate)
}

// EraseAccount ends the account and its keys, for good. It erases nothing by
// itself: what can be is erased where it is kept, and FinishErasure follows.
func (s *Service) EraseAccount(ctx context.Context, cause Cause, accountID, by, reason string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		return account.DecideErase(st, by, reason)
	})
}

// FinishErasure says that nothing is left of an erased account that can be
// erased.
func (s *Service) FinishErasure(ctx context.Context, cause Cause, accountID string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, account.DecideFinishErasure)
}

// IssueKey makes an API key. Its token starts with qa_test_ for a sandbox. A
// project that it is bound to is one of the account's: another's is not found,
// as everywhere.
func (s *Service) IssueKey(ctx context.Context, cause Cause, accountID string, in IssueKey) (IssuedKey, error) {
	if in.ProjectID != "" {
		owner, err := read(ctx, s.projects, domain.ProjectStream(in.ProjectID), func(st project.State) string { return st.AccountID })
		switch {
		case err != nil:
			return IssuedKey{}, err
		case owner != accountID:
			return IssuedKey{}, domain.NotFound("project")
		}
	}
	keyID := accountID + "." + domain.DeriveID(cause.CommandID, "key").String()
	live, sandbox := domain.NewToken(domain.LiveKeyPrefix), domain.NewToken(domain.SandboxKeyPrefix)
	cause.AccountID = accountID
	token, written, err := execute(ctx, s.accounts, cause, domain.AccountStream(accountID),
		func(st account.State, token *string) ([]domain.Event, error) {
			*token = live
			if st.Sandbox {
				*token = sandbox
			}
			return account.DecideIssueKey(st, account.KeyIssued{
				KeyID: keyID, Hash: domain.HashToken(*token), Prefix: domain.TokenHint(*token),
				Scope: in.Scope, ProjectID: in.ProjectID, ExpiresAt: in.ExpiresAt,
			})
		})
	return IssuedKey{KeyID: keyID, Token: token, Position: written.Position}, err
}

// RevokeKey ends an API key for good.
func (s *Service) RevokeKey(ctx context.Context, cause Cause, accountID, keyID string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		return account.DecideRevokeKey(st, keyID)
	})
}

func (s *Service) onAccount(ctx context.Context, cause Cause, accountID string, decide func(account.State) ([]domain.Event, error)) (domain.Position, error) {
	cause.AccountID = accountID
	_, written, err := execute(ctx, s.accounts, cause, domain.AccountStream(accountID),
		func(st account.State, _ *none) ([]domain.Event, error) { return decide(st) })
	return written.Position, err
}

// GrantCredits adds a lot to the account's ledger and says what is available
// then. expiresAt, in the account's time, nil: the lot never expires.
func (s *Service) GrantCredits(ctx context.Context, cause Cause, accountID string, amount domain.Credits, expiresAt *time.Time, reason string) (domain.Credits, domain.Position, error) {
	cause, err := s.withLedger(ctx, cause, accountID)
	if err != nil {
		return 0, domain.Position{}, err
	}
	lotID := domain.DeriveID(cause.CommandID, "lot").String()
	return s.onLedger(ctx, cause, func(st credits.State, now time.Time) ([]domain.Event, error) {
		return credits.DecideGrant(st, lotID, amount, expiresAt, reason, now)
	})
}

// withLedger is the cause of a command on the account's ledger: an account that
// never was, or was erased, has none.
func (s *Service) withLedger(ctx context.Context, cause Cause, accountID string) (Cause, error) {
	type of struct{ exists, erased, sandbox bool }
	known, err := read(ctx, s.accounts, domain.AccountStream(accountID), func(st account.State) of {
		return of{st.Exists, st.Erased, st.Sandbox}
	})
	switch {
	case err != nil:
	case !known.exists:
		err = domain.NotFound("account")
	case known.erased:
		err = account.ErrErased
	}
	cause.AccountID, cause.Sandbox = accountID, known.sandbox
	return cause, err
}

// NewCheckerID is the id of the checker that CreateChecker registers for that cause.
func NewCheckerID(cause Cause) string { return domain.DeriveID(cause.CommandID, "checker").String() }

// CreateChecker registers a checker. accounts are those they belong to: their
// jobs are never shown to them.
func (s *Service) CreateChecker(ctx context.Context, cause Cause, name string, accounts []string) (CreatedChecker, error) {
	out := CreatedChecker{
		CheckerID: NewCheckerID(cause),
		Token:     domain.NewToken(domain.CheckerKeyPrefix),
	}
	_, written, err := create(ctx, s.checkers, cause, domain.CheckerStream(out.CheckerID), func(st checker.State, _ *none) ([]domain.Event, error) {
		return checker.DecideCreate(st, checker.Created{
			Name: name, Hash: domain.HashToken(out.Token), Prefix: domain.TokenHint(out.Token), Accounts: accounts,
		})
	})
	out.Position = written.Position
	return out, err
}
