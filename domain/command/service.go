// Package command runs what callers ask for against the log: one file a
// command. Each loads (or has cached) the streams it touches, lets the pure
// decide functions of the aggregates decide, and appends what follows at the
// expected revision.
//
// A command that touches several streams keeps one order: settings first
// (idempotent), money last but one, the job last. A crash in between leaves a
// charge without a job, never a job without a charge; package policy settles
// the charge. What ends a job is the other way round: the job decides, the
// refund follows, and the policy repeats a refund that did not.
package command

import (
	"context"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// How many streams of each kind are kept folded in memory. A ledger is larger
// than a job, and hotter.
const (
	jobsCached     = 4096
	ledgersCached  = 1024
	projectsCached = 2048
	othersCached   = 512
)

// Sealer keeps secrets: package internal/vault. A sealed text opens only for
// the account and the stream it was sealed for.
type Sealer interface {
	Seal(ctx context.Context, accountID, stream string, plaintext []byte) (string, error)
	Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error)
	Fingerprint(ctx context.Context, accountID string, secret []byte) (string, error)
}

// ChecklistBrief is what a checklist is written from.
type ChecklistBrief struct {
	Type        job.Type
	URL         string
	Title       string
	Description string
	Feature     string
}

// ChecklistWriter writes the checklist of a job that came without one and says
// who wrote it ("rules", or a model's name).
type ChecklistWriter interface {
	Checklist(ctx context.Context, brief ChecklistBrief) (items []NewItem, by string, err error)
}

// Deps is what a Service stands on. All fields are required.
type Deps struct {
	Log        domain.Log
	Sealer     Sealer
	Checklists ChecklistWriter
	// Now is the clock; it is read once a command.
	Now func() time.Time
	// ClaimsPerChecker bounds the live claims of one checker.
	ClaimsPerChecker int
}

// Service runs commands. It may be used by many goroutines.
type Service struct {
	Deps
	accounts *streams[account.State]
	checkers *streams[checker.State]
	ledgers  *streams[credits.State]
	projects *streams[project.State]
	jobs     *streams[job.State]
}

// New makes a Service.
func New(d Deps) *Service {
	clock := d.Now
	d.Now = func() time.Time { return clock().UTC().Truncate(time.Millisecond) }
	return &Service{
		Deps:     d,
		accounts: newStreams(d.Log, d.Now, othersCached, account.Evolve),
		checkers: newStreams(d.Log, d.Now, othersCached, checker.Evolve),
		ledgers:  newStreams(d.Log, d.Now, ledgersCached, credits.Evolve),
		projects: newStreams(d.Log, d.Now, projectsCached, project.Evolve),
		jobs:     newStreams(d.Log, d.Now, jobsCached, job.Evolve),
	}
}

// Drain waits until every command that was accepted has been written or given
// up.
func (s *Service) Drain() {
	s.accounts.wait()
	s.checkers.wait()
	s.ledgers.wait()
	s.projects.wait()
	s.jobs.wait()
}

// NewCommandID makes the id of a command that nobody will repeat.
func NewCommandID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
