package command

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
)

// CreateAccount opens an account.
func (s *Service) CreateAccount(ctx context.Context, cause Cause, name string, sandbox bool) (string, domain.Position, error) {
	accountID := domain.DeriveID(cause.CommandID, "account").String()
	cause.AccountID = accountID
	written, err := s.accounts.create(ctx, cause, domain.AccountStream(accountID), func(st account.State) ([]domain.Event, error) {
		return account.DecideCreate(st, name, sandbox)
	})
	return accountID, written.Position, err
}

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

// IssueKey makes an API key. Its token starts with qa_test_ for a sandbox.
func (s *Service) IssueKey(ctx context.Context, cause Cause, accountID string, in IssueKey) (IssuedKey, error) {
	out := IssuedKey{KeyID: accountID + "." + domain.DeriveID(cause.CommandID, "key").String()}
	live, sandbox := domain.NewToken(domain.LiveKeyPrefix), domain.NewToken(domain.SandboxKeyPrefix)
	var err error
	out.Position, err = s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		out.Token = live
		if st.Sandbox {
			out.Token = sandbox
		}
		return account.DecideIssueKey(st, account.KeyIssued{
			KeyID: out.KeyID, Hash: domain.HashToken(out.Token), Prefix: domain.TokenHint(out.Token),
			Scope: in.Scope, ProjectID: in.ProjectID, ExpiresAt: in.ExpiresAt,
		})
	})
	return out, err
}

// RevokeKey ends an API key for good.
func (s *Service) RevokeKey(ctx context.Context, cause Cause, accountID, keyID string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		return account.DecideRevokeKey(st, keyID)
	})
}

func (s *Service) onAccount(ctx context.Context, cause Cause, accountID string, decide func(account.State) ([]domain.Event, error)) (domain.Position, error) {
	cause.AccountID = accountID
	written, err := s.accounts.execute(ctx, cause, domain.AccountStream(accountID), decide)
	return written.Position, err
}

// GrantCredits adds a lot to the account's ledger and says what is available
// then. expiresAt nil: the lot never expires.
func (s *Service) GrantCredits(ctx context.Context, cause Cause, accountID string, amount domain.Credits, expiresAt *time.Time, reason string) (domain.Credits, domain.Position, error) {
	exists := false
	if _, err := s.accounts.read(ctx, domain.AccountStream(accountID), func(st account.State) { exists = st.Exists }); err != nil {
		return 0, domain.Position{}, err
	}
	if !exists {
		return 0, domain.Position{}, domain.NotFound("account")
	}
	cause.AccountID = accountID
	lotID := domain.DeriveID(cause.CommandID, "lot").String()
	var available domain.Credits
	written, err := s.ledgers.execute(ctx, cause, domain.CreditsStream(accountID), func(st credits.State) ([]domain.Event, error) {
		now := s.Now()
		events, err := credits.DecideGrant(st, lotID, amount, expiresAt, reason, now)
		available = balanceAfter(st, events, now)
		return events, err
	})
	return available, written.Position, err
}

// CreateChecker registers a checker. accounts are those they belong to: their
// jobs are never shown to them.
func (s *Service) CreateChecker(ctx context.Context, cause Cause, name string, accounts []string) (CreatedChecker, error) {
	out := CreatedChecker{
		CheckerID: domain.DeriveID(cause.CommandID, "checker").String(),
		Token:     domain.NewToken(domain.CheckerKeyPrefix),
	}
	written, err := s.checkers.create(ctx, cause, domain.CheckerStream(out.CheckerID), func(st checker.State) ([]domain.Event, error) {
		return checker.DecideCreate(st, checker.Created{
			Name: name, Hash: domain.HashToken(out.Token), Prefix: domain.TokenHint(out.Token), Accounts: accounts,
		})
	})
	out.Position = written.Position
	return out, err
}
