// Package settings holds the commands that set things up: accounts and their keys,
// checkers, people, pools, projects with their webhooks' secrets, and the record of
// operators' acts. None of them touches a job or a ledger.
package settings

import (
	"context"
	"time"

	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/domain/pool"
	"humanqa/domain/project"
	"humanqa/domain/repository"
)

// Sealer keeps secrets: package internal/vault. A sealed text opens only for
// the account and the stream it was sealed for.
type Sealer interface {
	Seal(ctx context.Context, accountID, stream string, plaintext []byte) (string, error)
	Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error)
	Fingerprint(ctx context.Context, accountID, use string, secret []byte) (string, error)
}

// Commands runs the commands. It may be used by many goroutines.
type Commands struct {
	Repositories
	sealer Sealer
	now    func() time.Time
}

// Repositories are the streams that the commands are run on.
type Repositories struct {
	Accounts  *repository.Repository[account.State]
	Checkers  *repository.Repository[checker.State]
	Projects  *repository.Repository[project.State]
	People    *repository.Repository[person.State]
	Pools     *repository.Repository[pool.State]
	Oversight *repository.Repository[oversight.State]
}

// New makes Commands. now is the service's clock.
func New(r Repositories, sealer Sealer, now func() time.Time) *Commands {
	return &Commands{r, sealer, now}
}
