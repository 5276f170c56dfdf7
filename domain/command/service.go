package command

import (
	"cmp"
	"context"
	"time"

	"humanqa/domain"
	"humanqa/domain/command/claims"
	"humanqa/domain/command/money"
	"humanqa/domain/command/retention"
	"humanqa/domain/command/settings"
	"humanqa/domain/command/streams"
	"humanqa/domain/job"
)

// ChecklistBrief is the input for writing a checklist. The account has the budget for the
// writing.
type ChecklistBrief struct {
	job.Submission
	// Opening are the items that open the list already. What else failed may be asked for
	// again: the project's failures may have changed since Opening was chosen.
	Opening []job.Item
	// Failures are the project's open ones, newest first.
	Failures []Regression
}

// Regression is an item that failed when it was last tested.
type Regression struct {
	job.Item
	FailedAt time.Time
}

// AnalysisBrief is the input for the analysis of a report. It never holds credentials or
// access instructions.
type AnalysisBrief struct {
	job.Submission
	Report job.Completed
}

// Review has the AI's findings on a page. Every item has a verdict.
type Review struct {
	Items   []job.ReportItem
	Summary string
	By      string
}

// AI writes checklists and analyses, and reviews pages: package internal/ai.
// An error means that it may work later; an adapter that can never answer falls
// back to the rules and says so in "by".
type AI interface {
	// Instant says that Checklist calls no server, so a submission need not postpone it.
	Instant() bool
	// Checklist writes the list of a job that came without one; by is "rules",
	// or a model's name.
	Checklist(ctx context.Context, brief ChecklistBrief) (items []NewItem, by string, err error)
	// Analyse fills everything of the report but its ID and At.
	Analyse(ctx context.Context, brief AnalysisBrief) (job.AIReport, error)
	// Review fetches the page and checks it.
	Review(ctx context.Context, url string) (Review, error)
}

// Reads are the queries of read models that commands use. Their answers may be a moment
// old: the log decides everything that must hold.
type Reads interface {
	// ProjectForHost is the account's newest project with that host in its defaultUrl
	// (identity.Site).
	ProjectForHost(ctx context.Context, accountID, host string) (projectID string, found bool, err error)
	// OpenFailures are the items of the project with fail as their latest result, the
	// newest first, at most limit.
	OpenFailures(ctx context.Context, accountID, projectID string, limit int) ([]Regression, error)
	// KnownKeys picks those of the keys that the project's tests had, each with its text.
	KnownKeys(ctx context.Context, accountID, projectID string, keys []string) (map[string]string, error)
	// Tested says whether the project ever had a job.
	Tested(ctx context.Context, accountID, projectID string) (bool, error)
	// Ended picks those of the account's jobs that may have ended.
	Ended(ctx context.Context, accountID string, jobIDs []string) ([]string, error)
	// Waiting are the project's newest jobs that no checker has taken.
	Waiting(ctx context.Context, accountID, projectID string, limit int) (jobIDs []string, err error)
	// SamePlace are the account's jobs that may still run and have a commit status at the
	// same place (job.CommitStatus.SamePlace), at most a few hundred.
	SamePlace(ctx context.Context, accountID string, place job.CommitStatus) (jobIDs []string, err error)
}

// Tokens keep secrets for a while and then forget them: package internal/vault.
type Tokens interface {
	// Hold keeps a secret under a name. It opens for the same use only, and is forgotten
	// after atMost.
	Hold(ctx context.Context, accountID, name, use string, secret []byte, atMost time.Duration) error
	// Held opens the secret. domain.ErrShredded says that it is forgotten.
	Held(ctx context.Context, accountID, name, use string) ([]byte, error)
	Forget(ctx context.Context, accountID, name string) error
}

// Statuses sets commit statuses: package internal/codehost.
type Statuses interface {
	// Set sets a status. A repeat changes nothing at the code host. ErrStatusRefused says
	// that the host refused and will refuse again; any other error may pass.
	Set(ctx context.Context, to job.CommitStatus, token string, is StatusUpdate) error
}

// StatusUpdate is the content of a commit status.
type StatusUpdate struct {
	State       job.CommitState
	Description string
	// JobID is the job on the status's page; for a batch, its first job. BatchID is empty
	// without a batch.
	JobID, BatchID string
}

// Deps has the dependencies of a Service. All fields but CloseEvery and CloseFailed are
// required; only commit statuses use Tokens and Statuses.
type Deps struct {
	Log      domain.Log
	Sealer   Sealer
	Tokens   Tokens
	Statuses Statuses
	AI       AI
	Reads    Reads
	// Now is the clock; it is read once a command.
	Now func() time.Time
	// ClaimsPerChecker bounds the live claims of one checker.
	ClaimsPerChecker int
	// CloseEvery is the number of events after which a ledger is closed; 0: 250.
	CloseEvery int
	// CloseFailed gets the reason why a ledger could not be closed after a command. The
	// command is not affected: the ledger stays long, and costs memory and time.
	CloseFailed func(accountID string, err error)
}

// Service runs commands. It may be used by many goroutines.
type Service struct {
	*settings.Commands
	*claims.Claims
	*retention.Retention
	Deps

	ledger *money.Ledger
}

// New makes a Service.
func New(d Deps) *Service {
	clock := d.Now
	d.Now = func() time.Time { return clock().UTC().Truncate(time.Millisecond) }
	d.CloseEvery = cmp.Or(d.CloseEvery, money.CloseEvery)
	all := streams.New(d.Log, d.Now)
	s := &Service{Deps: d, Commands: settings.New(all, d.Sealer, d.Now)}
	s.Claims = claims.New(s.Commands, d.Sealer, d.Now, d.ClaimsPerChecker)
	s.Retention = retention.New(s.Commands)
	s.ledger = &money.Ledger{
		Log: d.Log, Now: d.Now, Clock: s.AccountTime, Ended: d.Reads.Ended, Ledgers: all.Ledgers, Jobs: all.Jobs,
		CloseEvery: d.CloseEvery, CloseFailed: d.CloseFailed,
	}
	return s
}

// Drain waits until every command that was accepted has been written or given
// up.
func (s *Service) Drain() {
	s.ledger.StopCloses()
	s.Wait()
}
