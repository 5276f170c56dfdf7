package service

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
)

// OperatorCause is the cause of every command of the operator's command line.
func OperatorCause(accountID string) command.Cause {
	return command.Cause{CommandID: domain.NewCommandID(), Actor: "operator", AccountID: accountID}
}

// ExpiryAfter is the end of a duration in the account's own time, by which lots
// expire; nil is never. Only a sandbox is ever ahead.
func ExpiryAfter(ctx context.Context, commands *command.Service, accountID string, d *time.Duration) (*time.Time, error) {
	if d == nil {
		return nil, nil
	}
	cause := OperatorCause(accountID)
	cause.Sandbox = true
	now, err := commands.AccountTime(ctx, cause)
	if err != nil {
		return nil, err
	}
	at := now.Add(*d)
	return &at, nil
}

// NewAccount is an account to open.
type NewAccount struct {
	Name          string
	KeyName       string // of its first key; may be empty
	Credits       domain.Credits
	CreditsExpire *time.Duration // nil: never
	Sandbox       bool
}

// OpenAccount makes an account ready to use. The key comes last: its holder finds the
// credits granted.
func OpenAccount(
	ctx context.Context, commands *command.Service, cause command.Cause, c NewAccount,
) (accountID string, key command.IssuedKey, err error) {
	if accountID, _, err = commands.CreateAccount(ctx, cause, c.Name, c.Sandbox); err != nil {
		return accountID, key, err
	}
	if c.Credits > 0 {
		expires, err := ExpiryAfter(ctx, commands, accountID, c.CreditsExpire)
		if err != nil {
			return accountID, key, err
		}
		if _, _, err := commands.GrantCredits(ctx, OperatorCause(accountID), accountID, c.Credits, expires, "account opened"); err != nil {
			return accountID, key, err
		}
	}
	key, err = commands.IssueKey(ctx, OperatorCause(accountID), accountID, command.IssueKey{Name: c.KeyName, Scope: account.ScopeFull})
	return accountID, key, err
}
