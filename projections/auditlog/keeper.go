package auditlog

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/internal/backoff"
	"humanqa/internal/metrics"
	"humanqa/internal/pgpool"
)

const (
	// signEvery is how often a checkpoint is signed while events arrive. Each signing
	// also verifies the events since the checkpoint before.
	signEvery = time.Minute
	// signFirst is how soon a log gets its first checkpoint.
	signFirst = time.Second
)

// Keeper signs a checkpoint a minute, and counts the findings. Any number of processes may
// keep.
type Keeper struct {
	metrics.Found

	signer *Signer
	log    logrus.FieldLogger
	every  time.Duration

	found   atomic.Int64 // by the last check of the whole log
	refused atomic.Bool  // the events since the newest checkpoint are not signed
}

// NewKeeper prepares a keeper; Run makes it sign.
func NewKeeper(signer *Signer, log logrus.FieldLogger) *Keeper {
	return &Keeper{signer: signer, log: log.WithField("component", "audit"), every: signEvery}
}

// Run signs until ctx ends, and then returns nil. It repeats after an error.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		wait := k.every
		_, found, err := k.signer.Sign(ctx)
		refused := errors.Is(err, ErrForked) || errors.Is(err, domain.ErrForged)
		switch {
		case refused:
			k.log.WithError(err).Error("no checkpoint is signed: look with `humanqa audit verify`")
		case err != nil && ctx.Err() == nil:
			k.log.WithError(err).Warn("no checkpoint could be signed, trying again")
		case !found:
			wait = min(wait, signFirst)
		}
		if err == nil || refused {
			k.remember(ctx, err)
		}
		_ = backoff.Wait(ctx, wait) // the loop finds out that ctx has ended
	}
	return nil
}

const setProblemSQL = `
UPDATE audit.keys
SET problem = $1
RETURNING findings`

// remember stores the reason why the keeper signs nothing, so that every process can show
// it, and takes the findings of the last check.
func (k *Keeper) remember(ctx context.Context, refused error) {
	k.refused.Store(refused != nil)
	problem := ""
	if refused != nil {
		problem = refused.Error()
	}
	findings, found, err := pgpool.Find[int64](ctx, k.signer.db, "what the audit found", setProblemSQL, problem)
	switch {
	case found: // else there is no key yet
		k.found.Store(findings)
	case err != nil && ctx.Err() == nil:
		k.log.WithError(err).Warn("the console does not show what the audit found")
	}
}

const setFindingsSQL = `
UPDATE audit.keys
SET findings = $1`

// Found stores how many findings the last check of the whole log has.
func (s *Signer) Found(ctx context.Context, findings int) error {
	return pgpool.Exec(ctx, s.db, "keep what the audit found", setFindingsSQL, findings)
}

const foundSQL = `
SELECT findings, problem
FROM audit.keys`

// Problem describes the audit's findings in one sentence; empty if there are none.
func (s *Signer) Problem(ctx context.Context) (string, error) {
	row, found, err := pgpool.Find[struct {
		Findings int64
		Problem  string
	}](ctx, s.db, "what the audit found", foundSQL)
	switch {
	case err != nil:
		return "", err
	case !found:
		return "", nil
	case row.Problem != "":
		return "no checkpoint is signed: " + row.Problem, nil
	case row.Findings > 0:
		return fmt.Sprintf("the audit of the whole log has %d findings: humanqa audit verify", row.Findings), nil
	}
	return "", nil
}

const acceptSQL = `
UPDATE audit.keys
SET (signed, signed_size) = (SELECT count(*), coalesce(max(size), 0) FROM audit.checkpoints),
    findings = 0,
    problem = ''`

// Accept clears the findings, after an operator has accepted the log by an event
// (origin.KeyBound).
func (s *Signer) Accept(ctx context.Context) error {
	return pgpool.Exec(ctx, s.db, "forget what the audit found", acceptSQL)
}

// collectLimit bounds how long a scrape waits for Postgres.
const collectLimit = 2 * time.Second

// Collect implements prometheus.Collector.
func (k *Keeper) Collect(out chan<- prometheus.Metric) {
	n := k.found.Load()
	if k.refused.Load() {
		n++
	}
	gauge := metrics.Gauges(out)
	gauge("humanqa_audit_findings", "What the last check of the whole log found, and 1 while what was written since the newest checkpoint "+
		"is not signed for what it is.", float64(n))
	ctx, cancel := context.WithTimeout(context.Background(), collectLimit)
	defer cancel()
	if age, err := k.signer.age(ctx); err == nil { // without an age the metric is left out
		gauge("humanqa_audit_checkpoint_age_seconds", "Age of the newest checkpoint while events wait behind it; 0 when none does.", age.Seconds())
	}
}

// age is the age of the newest checkpoint, if events have come after it; otherwise 0.
func (s *Signer) age(ctx context.Context) (time.Duration, error) {
	tree := NewTree(s.db)
	size, err := tree.Size(ctx)
	if err != nil {
		return 0, err
	}
	newest, _, err := s.Newest(ctx)
	if err != nil || newest.Size >= size {
		return 0, err
	}
	since := newest.Time
	if newest.Size == 0 {
		leaves, err := tree.leaves(ctx, 0, 1)
		if err != nil || len(leaves) == 0 {
			return 0, err
		}
		since = leaves[0].Created
	}
	return s.now().Sub(since), nil
}
