package v1

import (
	"context"
	"math"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/retention"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/input"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/report"
	"humanqa/httpapi/wire"
	"humanqa/projections"
	"humanqa/projections/asof"
	"humanqa/webhooks"
)

// Commands is what the handlers of clients ask of the domain: *command.Service.
type Commands interface {
	SubmitJob(context.Context, command.Cause, command.SubmitJob) (command.SubmittedJob, error)
	SubmitBulk(context.Context, command.Cause, []command.SubmitJob) (command.SubmittedBatch, error)
	EstimateJob(context.Context, command.Cause, command.SubmitJob) (command.Estimate, error)
	Retest(ctx context.Context, cause command.Cause, jobID string) (command.SubmittedJob, error)
	CancelJob(ctx context.Context, cause command.Cause, jobID, reason string) (command.CancelledJob, error)
	RateJob(ctx context.Context, cause command.Cause, jobID string, rating int, note string) (domain.Position, error)
	AnswerQuestion(ctx context.Context, cause command.Cause, jobID string, in command.AnswerQuestion) (job.Question, domain.Position, error)

	TestHosted(context.Context, command.Cause, command.HostedTest) (command.HostedJob, error)
	HookSecret(ctx context.Context, accountID, projectID string) (scheme string, secret []byte, err error)
	SetHookSignature(ctx context.Context, cause command.Cause, projectID, scheme, secret string, userID *string) (domain.Position, error)
	Deploy(ctx context.Context, cause command.Cause, projectID string, in command.Deploy) (command.HostedJob, error)
	PrepareNext(ctx context.Context, cause command.Cause, projectID string, fixes []command.PreparedFix) (command.PreparedFixes, error)
	CreateSession(context.Context, command.Cause, command.NewSession) (command.CreatedSession, error)
	CancelSession(ctx context.Context, cause command.Cause, sessionID string) (command.CancelledSession, error)
	FinalizeLoop(ctx context.Context, cause command.Cause, loopID, sessionID string, final loop.Status) (domain.Position, error)

	AccountTime(ctx context.Context, cause command.Cause) (time.Time, error)
	AdvanceClock(ctx context.Context, cause command.Cause, by time.Duration) (command.AdvancedClock, error)
	ReadySlots(ctx context.Context, cause command.Cause, sessionID string, slots []int) (command.CheckerSession, error)
	AskInPlay(
		ctx context.Context, cause command.Cause, jobID string, in command.PlayQuestion, results []command.PlayResult, summary string,
	) (job.Question, domain.Position, error)
	PlayJob(
		ctx context.Context, cause command.Cause, jobID string, results []command.PlayResult, summary string,
	) (job.Completed, domain.Position, error)

	CreateProject(context.Context, command.Cause, command.CreateProject) (command.CreatedProject, error)
	UpdateProject(
		ctx context.Context, cause command.Cause, projectID string, in command.UpdateProject,
	) (project.State, domain.Position, error)
	SetAccountRetention(ctx context.Context, cause command.Cause, change retention.Change) (retention.Keep, domain.Position, error)
	AccountRetention(ctx context.Context, accountID string) (retention.Keep, *retention.Hold, error)
	EnableWebhook(ctx context.Context, cause command.Cause, projectID string) (domain.Position, error)
	RotateSecret(ctx context.Context, cause command.Cause, projectID string, immediate bool) (command.RotatedSecret, error)
	FinishRotation(ctx context.Context, cause command.Cause, projectID string) (command.RotatedSecret, error)
}

// Deps is what the handlers of clients stand on.
type Deps struct {
	Commands Commands
	Reads    *projections.Reads
	DB       *sqlx.DB
	Reports  report.Reader
	Limits   *input.Limits
	Gate     *admit.Gate
	Writer   *admit.Writer
	Fresh    *admit.Freshness
	// PastLog is the log, for answers as they were, and Head its newest position.
	PastLog domain.Log
	Head    func(context.Context) (domain.Position, error)
	// Origin says which log that is; nil where it is not known.
	Origin readers.Origin
	// Checkpoint gives the newest signed checkpoint of the log, and the key to
	// verify it by; an empty note before the first event.
	Checkpoint func(context.Context) (note, verifier string, err error)
	// OwnLog gives accounts their own events, and proofs.
	OwnLog OwnLog
	// Evidence measures evidence.
	Evidence Evidence
	Log      logrus.FieldLogger
	Now      func() time.Time
	BaseURL  string
	// Stopping is closed when the service is about to stop: a request that waits for
	// something answers with what there is.
	Stopping <-chan struct{}
}

// Handlers are those of clients.
type Handlers struct {
	Deps
	past       *asof.Reads
	cursors    *readers.Cursors
	deliveries *webhooks.Log

	Readers *readers.Readers // of the feed, those that gave a name

	feedWatch   *readers.Watch
	streams     *wire.Quota
	ExportQuota *wire.Quota
	ReadGrace   time.Duration // of a client that reads a table
	Beat        time.Duration // between two signs of life of a stream
}

func New(d Deps) *Handlers {
	return &Handlers{
		Deps: d, past: asof.NewReads(d.PastLog, d.DB, d.Reads), cursors: readers.NewCursors(d.Origin, d.Head),
		Readers: readers.New(d.DB, d.Now, d.Log), deliveries: webhooks.NewLog(d.DB),
		feedWatch:   readers.NewWatch(d.Reads.Events, d.Reads.Access, d.Now, d.Log),
		streams:     wire.NewQuota(math.MaxInt64, StreamsPerKey, 0),
		ExportQuota: wire.NewQuota(QuotaOfNode, QuotaOfAccount, 0),
		ReadGrace:   wire.BodyGrace,
		Beat:        streamBeat,
	}
}

// Followers says how many streams of events are open on this node.
func (a *Handlers) Followers() int { return a.feedWatch.Followers() }
