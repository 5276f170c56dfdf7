package settings

import (
	"context"
	"strings"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/person"
	"humanqa/domain/repository"
)

// CreateAccount opens an account.
func (s *Commands) CreateAccount(ctx context.Context, cause domain.Cause, name string, sandbox bool) (string, domain.Position, error) {
	accountID := NewAccountID(cause)
	at, err := s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		return account.DecideCreate(st, name, sandbox)
	})
	return accountID, at, err
}

// NewAccountID is the id of the account that CreateAccount opens for that cause.
func NewAccountID(cause domain.Cause) string {
	return domain.DeriveID(cause.CommandID, "account").String()
}

// SuspendAccount stops every key of the account.
func (s *Commands) SuspendAccount(ctx context.Context, cause domain.Cause, accountID string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		return account.DecideSuspend(st, "operator")
	})
}

// ReinstateAccount ends a suspension.
func (s *Commands) ReinstateAccount(ctx context.Context, cause domain.Cause, accountID string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, account.DecideReinstate)
}

// EraseAccount ends the account and its keys, for good. It erases no data by itself: each
// store erases its own data, and FinishErasure follows.
func (s *Commands) EraseAccount(ctx context.Context, cause domain.Cause, accountID, by, reason string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		return account.DecideErase(st, by, reason)
	})
}

// FinishErasure records that no erasable data of an erased account are left.
func (s *Commands) FinishErasure(ctx context.Context, cause domain.Cause, accountID string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, account.DecideFinishErasure)
}

// RecordRefusals records tests of the account that were refused.
func (s *Commands) RecordRefusals(ctx context.Context, cause domain.Cause, accountID string, e account.SubmissionsRefused) error {
	_, err := s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) { return account.DecideRefused(st, e) })
	return err
}

// IssueKey makes an API key. Its token starts with qa_test_ for a sandbox. A project that
// it is bound to must be the account's own: another account's project is not found.
func (s *Commands) IssueKey(ctx context.Context, cause domain.Cause, accountID string, in IssueKey) (IssuedKey, error) {
	if in.ProjectID != "" {
		p, err := s.Project(ctx, in.ProjectID)
		switch {
		case err != nil:
			return IssuedKey{}, err
		case p.AccountID != accountID:
			return IssuedKey{}, domain.NotFound("project")
		}
	}
	of, err := s.Account(ctx, accountID)
	if err != nil {
		return IssuedKey{}, err
	}
	prefix := domain.LiveKeyPrefix
	if of.Sandbox {
		prefix = domain.SandboxKeyPrefix
	}
	key := IssuedKey{KeyID: accountID + "." + domain.DeriveID(cause.CommandID, "key").String(), Token: domain.NewToken(prefix)}
	key.Position, err = s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		return account.DecideIssueKey(st, account.KeyIssued{
			Name: strings.TrimSpace(in.Name), KeyID: key.KeyID, Hash: domain.HashToken(key.Token), Prefix: domain.TokenHint(key.Token),
			Scope: in.Scope, ProjectID: in.ProjectID, ExpiresAt: in.ExpiresAt,
		})
	})
	return key, err
}

// RevokeKey ends an API key for good.
func (s *Commands) RevokeKey(ctx context.Context, cause domain.Cause, accountID, keyID string) (domain.Position, error) {
	return s.onAccount(ctx, cause, accountID, func(st account.State) ([]domain.Event, error) {
		return account.DecideRevokeKey(st, keyID)
	})
}

func (s *Commands) onAccount(
	ctx context.Context, cause domain.Cause, accountID string, decide func(account.State) ([]domain.Event, error),
) (domain.Position, error) {
	cause.AccountID = accountID
	return repository.Decide(ctx, s.Accounts, cause, domain.AccountStream(accountID), decide)
}

// NewCheckerID is the id of the checker that CreateChecker registers for that cause.
func NewCheckerID(cause domain.Cause) string {
	return domain.DeriveID(cause.CommandID, "checker").String()
}

// CreateChecker registers a checker. accounts are those that the checker belongs to:
// their jobs are never shown to the checker.
func (s *Commands) CreateChecker(ctx context.Context, cause domain.Cause, name string, accounts []string) (CreatedChecker, error) {
	out := CreatedChecker{
		CheckerID: NewCheckerID(cause),
		Token:     domain.NewToken(domain.CheckerKeyPrefix),
	}
	var err error
	out.Position, err = repository.Decide(ctx, s.Checkers, cause, domain.CheckerStream(out.CheckerID),
		func(st checker.State) ([]domain.Event, error) {
			return checker.DecideCreate(st, checker.Created{
				Name: name, Hash: domain.HashToken(out.Token), Prefix: domain.TokenHint(out.Token), Accounts: accounts,
			})
		})
	return out, err
}

// Checker gives a checker as the log has them; NotFound without one.
func (s *Commands) Checker(ctx context.Context, checkerID string) (checker.State, error) {
	st, err := repository.Read(ctx, s.Checkers, domain.CheckerStream(checkerID), func(st checker.State) checker.State { return st })
	if err == nil && !st.Exists {
		err = domain.NotFound("checker")
	}
	return st, err
}

// EraseChecker records in the log that the checker is erased: the checker's key works no
// more. The caller destroys the key of the checker's texts, and everything derived from
// them.
func (s *Commands) EraseChecker(ctx context.Context, cause domain.Cause, checkerID, by, reason string) (domain.Position, error) {
	return repository.Decide(ctx, s.Checkers, cause, domain.CheckerStream(checkerID), func(st checker.State) ([]domain.Event, error) {
		return checker.DecideErase(st, by, reason, s.now())
	})
}

// Person gives a person as the log has them; NotFound without one.
func (s *Commands) Person(ctx context.Context, personID string) (person.State, error) {
	st, err := repository.Read(ctx, s.People, domain.PersonStream(personID), func(st person.State) person.State { return st })
	if err == nil && !st.Exists {
		err = domain.NotFound("person")
	}
	return st, err
}
