// Package streams has the repositories of all streams that commands are run on.
package streams

import (
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/host"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/domain/pool"
	"humanqa/domain/project"
	"humanqa/domain/repository"
	"humanqa/domain/session"
)

// The numbers of streams of each kind that are kept folded in memory. A ledger is larger
// than a job, and hotter.
const (
	jobsCached     = 4096
	ledgersCached  = 1024
	projectsCached = 2048
	othersCached   = 512
	// jobsBytes bounds the jobs' memory, too: some take 2 kB, long ones more than a
	// hundred times as much.
	jobsBytes = 32 << 20
)

// Streams has a repository for each kind of stream.
type Streams struct {
	Accounts  *repository.Repository[account.State]
	Checkers  *repository.Repository[checker.State]
	Ledgers   *repository.Repository[credits.State]
	Projects  *repository.Repository[project.State]
	Jobs      *repository.Repository[job.State]
	Hosts     *repository.Repository[host.State]
	Sessions  *repository.Repository[session.State]
	Loops     *repository.Repository[loop.State]
	People    *repository.Repository[person.State]
	Pools     *repository.Repository[pool.State]
	Oversight *repository.Repository[oversight.State]
}

// New makes the repositories. now is the service's clock.
func New(log domain.Log, now func() time.Time) *Streams {
	s := &Streams{
		Accounts:  repository.New(log, now, othersCached, account.Evolve),
		Checkers:  repository.New(log, now, othersCached, checker.Evolve),
		Ledgers:   repository.New(log, now, ledgersCached, credits.Evolve),
		Projects:  repository.New(log, now, projectsCached, project.Evolve),
		Jobs:      repository.New(log, now, jobsCached, job.Evolve),
		Hosts:     repository.New(log, now, projectsCached, host.Evolve),
		Sessions:  repository.New(log, now, othersCached, session.Evolve),
		Loops:     repository.New(log, now, othersCached, loop.Evolve),
		People:    repository.New(log, now, othersCached, person.Evolve),
		Pools:     repository.New(log, now, othersCached, pool.Evolve),
		Oversight: repository.New(log, now, othersCached, oversight.Evolve),
	}
	s.Jobs.MaxBytes = jobsBytes
	s.Ledgers.ClosedBy = (*credits.Closed)(nil).EventType()
	return s
}

// Account gives an account as the log has it now. Like the other states here, it may be
// kept, and it is the zero state where there is none.
func (s *Streams) Account(ctx context.Context, accountID string) (account.State, error) {
	return repository.Read(ctx, s.Accounts, domain.AccountStream(accountID), account.State.Clone)
}

// Job gives a job.
func (s *Streams) Job(ctx context.Context, jobID string) (job.State, error) {
	return repository.Read(ctx, s.Jobs, domain.JobStream(jobID), job.State.Clone)
}

// Project gives a project.
func (s *Streams) Project(ctx context.Context, projectID string) (project.State, error) {
	return repository.Read(ctx, s.Projects, domain.ProjectStream(projectID), func(st project.State) project.State { return st })
}

// Session gives a session.
func (s *Streams) Session(ctx context.Context, sessionID string) (session.State, error) {
	return repository.Read(ctx, s.Sessions, domain.SessionStream(sessionID), session.State.Clone)
}

// Wait returns when no command is being written any more.
func (s *Streams) Wait() {
	for _, kind := range []interface{ Wait() }{
		s.Accounts, s.Checkers, s.Ledgers, s.Projects, s.Jobs, s.Hosts, s.Sessions, s.Loops, s.People, s.Pools, s.Oversight,
	} {
		kind.Wait()
	}
}
