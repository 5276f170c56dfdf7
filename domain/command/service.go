// Package command runs what callers ask for against the log. api.go is all that
// can be asked, and what is answered; a file holds one command, or those of one
// subject. Each loads (or has cached) the streams it touches, lets the pure
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
	"humanqa/domain/host"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/domain/pool"
	"humanqa/domain/project"
	"humanqa/domain/session"
)

// How many streams of each kind are kept folded in memory. A ledger is larger
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

// Sealer keeps secrets: package internal/vault. A sealed text opens only for
// the account and the stream it was sealed for.
type Sealer interface {
	Seal(ctx context.Context, accountID, stream string, plaintext []byte) (string, error)
	Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error)
	Fingerprint(ctx context.Context, accountID, use string, secret []byte) (string, error)
}

// ChecklistBrief is what a checklist is written from.
type ChecklistBrief struct {
	Type        job.Type
	URL         string
	Title       string
	Description string
	Feature     string
	// Failures are the project's open ones, newest first.
	Failures []Regression
	// AccountID is whose budget the writing counts against.
	AccountID string
}

// Regression is an item that failed when it was last tested.
type Regression struct {
	Key             string
	Description     string
	ExpectedOutcome string
	Severity        job.Severity
	FailedAt        time.Time
}

// AnalysisBrief is what a report is analysed from. It never holds credentials
// or access instructions.
type AnalysisBrief struct {
	AccountID   string
	Type        job.Type
	URL         string
	Title       string
	Description string
	Feature     string
	Target      job.Target // what the job was to be tested on
	Report      job.Completed
}

// Review is what the AI found on a page by itself. Every item has a verdict.
type Review struct {
	Items   []job.ReportItem
	Summary string
	By      string
}

// AI writes checklists and analyses, and reviews pages: package internal/ai.
// An error means that it may work later; an adapter that can never answer falls
// back to the rules and says so in "by".
type AI interface {
	// Instant says that Checklist asks nobody, so that a submission need not
	// put it off.
	Instant() bool
	// Checklist writes the list of a job that came without one; by is "rules",
	// or a model's name.
	Checklist(ctx context.Context, brief ChecklistBrief) (items []NewItem, by string, err error)
	// Analyse fills everything of the report but its ID and At.
	Analyse(ctx context.Context, brief AnalysisBrief) (job.AIReport, error)
	// Review fetches the page and checks it.
	Review(ctx context.Context, url string) (Review, error)
}

// Reads is what the read models know that a command starts from. They may
// be a moment old: whatever must hold is decided on the log.
type Reads interface {
	// ProjectForHost is the account's newest project whose defaultUrl has that
	// host (lower case, no default port, no "www.").
	ProjectForHost(ctx context.Context, accountID, host string) (projectID string, found bool, err error)
	// OpenFailures are the items of the project whose latest result is fail, the
	// newest first, at most limit.
	OpenFailures(ctx context.Context, accountID, projectID string, limit int) ([]Regression, error)
	// Tested says whether the project ever had a job.
	Tested(ctx context.Context, accountID, projectID string) (bool, error)
	// Ended picks those of the account's jobs that may have ended.
	Ended(ctx context.Context, accountID string, jobIDs []string) ([]string, error)
}

// Deps is what a Service stands on. All fields but CloseEvery and CloseFailed are
// required.
type Deps struct {
	Log    domain.Log
	Sealer Sealer
	AI     AI
	Reads  Reads
	// Now is the clock; it is read once a command.
	Now func() time.Time
	// ClaimsPerChecker bounds the live claims of one checker.
	ClaimsPerChecker int
	// CloseEvery is after how many events a ledger is closed; 0: 1000.
	CloseEvery int
	// CloseFailed is told why a ledger could not be closed behind a command. The
	// command is not affected: the ledger stays long, and costs memory and time.
	CloseFailed func(accountID string, err error)
}

// Service runs commands. It may be used by many goroutines.
type Service struct {
	Deps
	accounts  *repository[account.State]
	checkers  *repository[checker.State]
	ledgers   *repository[credits.State]
	projects  *repository[project.State]
	jobs      *repository[job.State]
	hosts     *repository[host.State]
	sessions  *repository[session.State]
	loops     *repository[loop.State]
	people    *repository[person.State]
	pools     *repository[pool.State]
	oversight *repository[oversight.State]
	books     books
	recent    Recent // nil: the log is asked
	inherited inheritances
}

// New makes a Service.
func New(d Deps) *Service {
	clock := d.Now
	d.Now = func() time.Time { return clock().UTC().Truncate(time.Millisecond) }
	if d.CloseEvery == 0 {
		d.CloseEvery = closeEvery
	}
	s := &Service{
		Deps:      d,
		accounts:  newRepository(d.Log, d.Now, othersCached, account.Evolve),
		checkers:  newRepository(d.Log, d.Now, othersCached, checker.Evolve),
		ledgers:   newRepository(d.Log, d.Now, ledgersCached, credits.Evolve),
		projects:  newRepository(d.Log, d.Now, projectsCached, project.Evolve),
		jobs:      newRepository(d.Log, d.Now, jobsCached, job.Evolve),
		hosts:     newRepository(d.Log, d.Now, projectsCached, host.Evolve),
		sessions:  newRepository(d.Log, d.Now, othersCached, session.Evolve),
		loops:     newRepository(d.Log, d.Now, othersCached, loop.Evolve),
		people:    newRepository(d.Log, d.Now, othersCached, person.Evolve),
		pools:     newRepository(d.Log, d.Now, othersCached, pool.Evolve),
		oversight: newRepository(d.Log, d.Now, othersCached, oversight.Evolve),
	}
	s.jobs.most = jobsBytes
	s.ledgers.closedBy = (*credits.Closed)(nil).EventType()
	return s
}

// Drain waits until every command that was accepted has been written or given
// up.
func (s *Service) Drain() {
	s.books.stop()
	s.accounts.wait()
	s.checkers.wait()
	s.ledgers.wait()
	s.projects.wait()
	s.jobs.wait()
	s.hosts.wait()
	s.sessions.wait()
	s.loops.wait()
	s.people.wait()
	s.pools.wait()
	s.oversight.wait()
}

// clock is the account's time: the service's, or what a sandbox has made of it
// (decisions, "Sandbox clock").
func (s *Service) clock(ctx context.Context, cause Cause) (time.Time, error) {
	now := s.Now()
	if cause.Sandbox {
		ahead, err := read(ctx, s.accounts, domain.AccountStream(cause.AccountID), func(st account.State) time.Duration {
			return st.Ahead
		})
		if err != nil {
			return now, err
		}
		now = now.Add(ahead)
	}
	if now.Before(cause.NotBefore) {
		return cause.NotBefore, nil
	}
	return now, nil
}

// AccountTime is the time that the account's reads go by.
func (s *Service) AccountTime(ctx context.Context, cause Cause) (time.Time, error) {
	return s.clock(ctx, cause)
}

// NewCommandID makes the id of a command that nobody will repeat.
func NewCommandID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
