package v1

import (
	"context"
	"math"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/input"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/report"
	"humanqa/httpapi/v1/facts"
	"humanqa/httpapi/wire"
	"humanqa/projections"
	"humanqa/projections/asof"
	"humanqa/webhooks"
)

// Submitter takes the submission of a job: *command.Service, or a stand-in.
type Submitter interface {
	SubmitJob(context.Context, command.Cause, command.SubmitJob) (command.SubmittedJob, error)
}

// Shared holds the dependencies of the API and all of its handlers.
type Shared struct {
	Commands *command.Service
	Submits  Submitter // nil: Commands
	Reads    *projections.Reads
	DB       *sqlx.DB
	Lent     *sqlx.DB // connections of DB, for reads
	Evidence *evidence.Service
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
	Log    logrus.FieldLogger
	Now    func() time.Time
	// BaseURL starts every URL that is handed out; no slash at its end.
	BaseURL string
}

// Deps holds the dependencies of the handlers of clients.
type Deps struct {
	Shared
	Reports report.Reader
	Limits  *input.Limits
	Gate    *admit.Gate
	Writer  *admit.Writer
	Fresh   *admit.Freshness
	// Stopping is closed when the service is about to stop: a request that waits for news
	// then answers with the data it has.
	Stopping <-chan struct{}
}

// Handlers are the handlers of clients.
type Handlers struct {
	Deps
	past       *asof.Reads
	cursors    *readers.Cursors
	deliveries *webhooks.Log

	Readers *readers.Readers // the named readers of the feed

	feedWatch   *readers.Watch
	streams     *wire.Quota
	ExportQuota *wire.Quota
	ReadGrace   time.Duration // of a client that reads a table
	Beat        time.Duration // between two signs of life of a stream
}

func New(d Deps) *Handlers {
	return &Handlers{
		Deps: d, past: asof.NewReads(d.PastLog, d.Lent, d.Reads), cursors: readers.NewCursors(d.Origin, d.Head),
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

func (a *Handlers) activity(r *wire.Request) (wire.Answer, error) {
	return facts.Activity(r, a.Reads.Activity)
}
