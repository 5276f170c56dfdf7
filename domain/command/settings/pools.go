package settings

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/pool"
	"humanqa/domain/repository"
)

// CreatePool makes a pool of checkers; one of an account is for that account's
// tests alone (decisions, "Pools").
func (s *Commands) CreatePool(
	ctx context.Context, cause domain.Cause, name, accountID string,
) (poolID string, at domain.Position, err error) {
	if accountID != "" {
		if _, err := s.ExistingAccount(ctx, accountID); err != nil {
			return "", domain.Position{}, err
		}
	}
	poolID = domain.DeriveID(cause.CommandID, "pool").String()
	cause.AccountID = accountID
	at, err = s.onPool(ctx, cause, poolID, func(st pool.State) ([]domain.Event, error) {
		return pool.DecideCreate(st, pool.Created{Name: name, AccountID: accountID})
	})
	return poolID, at, err
}

// AddToPool takes a checker into a pool.
func (s *Commands) AddToPool(ctx context.Context, cause domain.Cause, poolID, checkerID string) (domain.Position, error) {
	if _, err := s.Checker(ctx, checkerID); err != nil {
		return domain.Position{}, err
	}
	return s.onPool(ctx, cause, poolID, func(st pool.State) ([]domain.Event, error) { return pool.DecideAdd(st, checkerID) })
}

// RemoveFromPool takes a checker out of a pool. The checker may finish their claimed
// jobs.
func (s *Commands) RemoveFromPool(ctx context.Context, cause domain.Cause, poolID, checkerID string) (domain.Position, error) {
	return s.onPool(ctx, cause, poolID, func(st pool.State) ([]domain.Event, error) { return pool.DecideRemove(st, checkerID) })
}

func (s *Commands) onPool(
	ctx context.Context, cause domain.Cause, poolID string, decide func(pool.State) ([]domain.Event, error),
) (domain.Position, error) {
	return repository.Decide(ctx, s.Pools, cause, domain.PoolStream(poolID), decide)
}

// ChoosePool keeps the account's tests, waiting ones included, to a pool's checkers. With
// an empty id they may go to any checker.
func (s *Commands) ChoosePool(ctx context.Context, cause domain.Cause, accountID, poolID string) (domain.Position, error) {
	if poolID != "" {
		serves, err := repository.Read(ctx, s.Pools, domain.PoolStream(poolID), func(st pool.State) bool { return st.Serves(accountID) })
		switch {
		case err != nil:
			return domain.Position{}, err
		case !serves:
			return domain.Position{}, domain.NotFound("pool").WithHint("it may be another account's")
		}
	}
	return s.onAccount(ctx, cause, accountID,
		func(st account.State) ([]domain.Event, error) { return account.DecideChoosePool(st, poolID) })
}

// ProfileChecker records a checker's own profile.
func (s *Commands) ProfileChecker(
	ctx context.Context, cause domain.Cause, checkerID string, languages, devices []string,
) (domain.Position, error) {
	return repository.Decide(ctx, s.Checkers, cause, domain.CheckerStream(checkerID), func(st checker.State) ([]domain.Event, error) {
		return checker.DecideProfile(st, checker.Profiled{Languages: languages, Devices: devices})
	})
}

// InPool says that tests for the pool may go to the checker. Without a pool they may go
// to any checker.
func (s *Commands) InPool(ctx context.Context, poolID, checkerID string) (bool, error) {
	if poolID == "" {
		return true, nil
	}
	return repository.Read(ctx, s.Pools, domain.PoolStream(poolID), func(st pool.State) bool { return st.Has(checkerID) })
}

// ExistingAccount gives an account, and refuses a missing or erased one.
func (s *Commands) ExistingAccount(ctx context.Context, accountID string) (account.State, error) {
	st, err := s.Account(ctx, accountID)
	switch {
	case err != nil:
	case !st.Exists:
		err = domain.NotFound("account")
	case st.Erased:
		err = account.ErrErased
	}
	return st, err
}
