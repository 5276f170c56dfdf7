package evidence

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/internal/backoff"
	"humanqa/internal/blob"
	"humanqa/internal/vault"
)

// Deps holds the dependencies of the service. RecordingLimit and WriteTime may be 0; all else is
// required.
type Deps struct {
	// DB is used by transactions that wait for a command, too. So no command may need a
	// connection of DB while DB may take them all: it is a lent pool (pgpool.Lend).
	DB       *sqlx.DB
	Files    Files
	Commands *command.Service
	Vault    *vault.Vault // signs links
	// Spool stores the bodies of large requests. It is the API's, so that both share one
	// limit.
	Spool *wire.Spool
	// BaseURL starts every link; no slash at its end.
	BaseURL string
	// RecordingLimit bounds the bytes that one checker may record of one job; 0 for
	// DefaultRecordingLimit.
	RecordingLimit int64
	// WriteTime bounds the writing of one uploaded file; 0 for 30 seconds, which Erase
	// counts on.
	WriteTime time.Duration
	Log       logrus.FieldLogger
	Now       func() time.Time
}

// Files stores the files.
type Files = blob.Bucket

// Service keeps evidence.
type Service struct {
	Deps

	pieces     pieceRows
	recordings recordingRows
	finished   chan struct{} // a recording was finished
}

// New makes the service. It does its upkeep in Run.
func New(d Deps) *Service {
	d.RecordingLimit = cmp.Or(d.RecordingLimit, DefaultRecordingLimit)
	d.WriteTime = cmp.Or(d.WriteTime, writeTime)
	return &Service{
		Deps: d, pieces: pieceRows{db: d.DB}, recordings: recordingRows{db: d.DB}, finished: make(chan struct{}, 1),
	}
}

const (
	// sweepEvery is the time between two sweeps.
	sweepEvery = 10 * time.Minute
	// expireEvery is the time between two looks for evidence that is due.
	expireEvery = time.Minute
	// writeTime bounds the writing of one uploaded file.
	writeTime = 30 * time.Second
)

// Run removes uploads that broke off, makes files of recordings that have ended, and
// expires evidence, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var assembling sync.WaitGroup
	assembling.Go(func() { s.runAssembly(ctx) })
	assembling.Go(func() { s.runExpiry(ctx) })
	defer assembling.Wait()
	for again := true; again; again = backoff.Wait(ctx, sweepEvery) == nil {
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.Log.WithError(err).Warn("uploads that broke off stay until the next sweep")
		}
	}
	return nil
}

// runExpiry removes evidence that is kept no longer, until ctx ends.
func (s *Service) runExpiry(ctx context.Context) {
	for again := true; again; again = backoff.Wait(ctx, expireEvery) == nil {
		swept, err := s.Expire(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.WithError(err).Warn("evidence that is due stays until the next sweep")
		}
		if swept.Expired.Files > 0 || swept.Erased.Files > 0 {
			s.Log.WithField("expired", swept.Expired.Files).WithField("erased", swept.Erased.Files).WithField("bytes", swept.Erased.Bytes).
				Info("evidence that is kept no longer is gone")
		}
	}
}

// Expire removes evidence that is kept no longer.
func (s *Service) Expire(ctx context.Context) (Swept, error) {
	return Expiry{DB: s.DB, Files: s.Files, Commands: s.Commands}.Sweep(ctx)
}

// Sweep removes uploads and parts of recordings that broke off or are needed no
// more.
func (s *Service) Sweep(ctx context.Context) error {
	return errors.Join(sweep(ctx, s.DB, s.Files, "evidence", unfinishedEvidenceSQL, forgetEvidenceSQL),
		sweep(ctx, s.DB, s.Files, "recordings", unneededPartListSQL, forgetPartSQL))
}
