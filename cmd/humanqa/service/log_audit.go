package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"humanqa/cmd/humanqa/service/fsck"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/origin"
	"humanqa/domain/oversight"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/eventstore/node/store"
	"humanqa/internal/backoff"
	"humanqa/internal/datadir"
	"humanqa/internal/invariantcheck"
	"humanqa/projections"
	"humanqa/projections/auditlog"
)

// treeLimit is how long a command waits for the tree to show the log's end.
const treeLimit = 5 * time.Minute

// Signer signs checkpoints of the log.
func (c *Core) Signer() *auditlog.Signer {
	return auditlog.NewSigner(c.DB, c.Log, c.Vault, c.Clock.Now)
}

// growTree waits until the tree holds every event there is by now. Where no
// service runs, this process grows it.
func (c *Core) growTree(ctx context.Context, log *logrus.Logger) error {
	head, err := c.Log.Head(ctx)
	if err != nil || head == (domain.Position{}) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, treeLimit)
	defer cancel()
	if !c.Served {
		feed := eventstore.NewFeed(c.Log, logging.Quiet(log)) // not run: it then reads pages
		grower := consumer.New(c.DB, feed, logging.Quiet(log), auditlog.Projector{})
		growing, stop := context.WithCancel(ctx)
		grown := make(chan error, 1)
		go func() { grown <- grower.Run(growing) }()
		defer func() {
			stop()
			if err := <-grown; err != nil {
				log.WithError(err).Warn("the tree did not grow in order")
			}
		}()
	}
	for {
		all, err := consumer.List(ctx, c.DB)
		if err != nil {
			return err
		}
		for _, s := range all {
			switch {
			case s.Name != auditlog.Name || !s.Serving:
			case s.Failure != nil:
				return fmt.Errorf("the tree stopped growing at %s: %s: humanqa projections list", s.Failure.Position, s.Failure.Detail)
			case s.Position.Compare(head) >= 0:
				return nil
			}
		}
		if backoff.Wait(ctx, 50*time.Millisecond) != nil {
			return errors.New("the tree did not get to the log's end: does a process with the role projector run? humanqa projections list")
		}
	}
}

// NewCheckpoint signs the log as it is.
func (c *Core) NewCheckpoint(ctx context.Context, log *logrus.Logger) (auditlog.Checkpoint, error) {
	if err := c.growTree(ctx, log); err != nil {
		return auditlog.Checkpoint{}, err
	}
	signed, found, err := c.Signer().Sign(ctx)
	if errors.Is(err, auditlog.ErrForked) {
		return signed, fmt.Errorf("%w: humanqa audit verify says where", err)
	}
	if err == nil && !found {
		err = errors.New("the log is empty: there is nothing to sign")
	}
	return signed, err
}

// checkpoint is the newest one, for the API.
func (c *Core) checkpoint(ctx context.Context) (note, verifier string, err error) {
	signed, found, err := c.Signer().Latest(ctx)
	if err != nil || !found {
		return "", "", err
	}
	verifier, err = c.Signer().Verifier(ctx)
	return signed.Note, verifier, err
}

// newChecks prepares the checks of the invariants that run in this process, beside its work.
func (c *Core) newChecks(log *logrus.Logger) *invariantcheck.Checks {
	return invariantcheck.New(c.DB, func(ctx context.Context, tell invariantcheck.Progress) (invariantcheck.Result, error) {
		all := c.Installation()
		all.Gently = true
		if c.postgres != nil {
			sizes, err := consumer.Sizes(ctx, c.DB)
			if err == nil {
				err = roomFor(sizes, datadir.Places(c.Config.DataDir))
			}
			if err != nil {
				return invariantcheck.Result{}, err
			}
		}
		out, err := all.Check(ctx, log, tell, projections.Names())
		if err != nil {
			return out.Result, err
		}
		return out.Result, c.Signer().Found(ctx, fsck.Unsigned(out.Findings))
	}, log)
}

// roomFor refuses a check whose rows, which it folds beside the serving ones, could fill a disk.
func roomFor(sizes map[string]int64, places map[string]string) error {
	var needs int64
	for _, size := range sizes {
		needs += size
	}
	for _, place := range places {
		free, _, err := datadir.Room(place)
		if err != nil {
			return err
		}
		if free/2 < needs {
			return fmt.Errorf("a check needs %d bytes of disk for a second copy of the read models, and half of what is free is %d: "+
				"make room", needs, free/2)
		}
	}
	return nil
}

// Accept lets the audit go on behind findings that name no event, such as lost checkpoints,
// and behind a signing key that was made anew.
func (c *Core) Accept(ctx context.Context, reason string) error {
	bound, err := c.Log.Bound(ctx)
	if err != nil {
		return err
	}
	verifier, err := c.Signer().Verifier(ctx)
	if err != nil {
		return err
	}
	if bound.Key == auditlog.KeyHash(verifier) {
		err = c.Binding.Judge(ctx, origin.AuditJudged{Reason: reason})
	} else {
		err = c.Binding.AcceptKey(ctx, "operator", reason)
	}
	if err != nil {
		return err
	}
	return c.Signer().Accept(ctx)
}

// Judge accepts or disowns one event that is not proved to be the service's.
func (c *Core) Judge(ctx context.Context, log *logrus.Logger, id uuid.UUID, disown bool, reason string) error {
	if err := c.growTree(ctx, log); err != nil {
		return err
	}
	leaf, found, err := auditlog.NewTree(c.DB).Find(ctx, id)
	if err != nil {
		return err
	}
	if !found {
		return domain.NotFound("event " + id.String()).WithHint("humanqa audit verify names the events")
	}
	bound, err := c.Log.Bound(ctx)
	if err != nil {
		return err
	}
	if disown {
		if err := c.foldsWithout(ctx, leaf.Stream, bound); err != nil {
			return err
		}
	}
	said := origin.AuditJudged{EventID: id.String(), Disowned: disown, Reason: reason}
	err = c.Log.ReadRawPage(ctx, leaf.Stream, leaf.Revision, 1, func(e eventstore.RawEvent) error {
		if e.ID == id && c.Log.Unproved(e, bound) != "" {
			said.Sum = e.Sum()
		}
		return nil
	})
	if err == nil && said.Sum == "" {
		err = fmt.Errorf("event %s is proved, or was judged before: humanqa audit verify names those that are not", id)
	}
	if err != nil {
		return err
	}
	if err := c.Binding.Judge(ctx, said); err != nil {
		return err
	}
	return generation.RetryStream(ctx, c.DB, leaf.Stream)
}

// foldsWithout refuses to disown what later events of a ledger rest on: an older version
// charged jobs to a forged grant. Without it the ledger would contradict itself for ever.
func (c *Core) foldsWithout(ctx context.Context, stream string, bound eventstore.Bound) error {
	var ledger credits.State // of other streams it takes nothing
	err := c.Log.ReadRaw(ctx, stream, func(e eventstore.RawEvent) error {
		if c.Log.Unproved(e, bound) != "" || bound.Disowns(e) {
			return nil
		}
		r, err := e.Decode()
		if err == nil {
			ledger = credits.Evolve(ledger, r.Event)
		}
		return err
	})
	if err == nil && ledger.Damage() != nil {
		err = fmt.Errorf("an older version went by it, and without it the ledger is damaged: %w: "+
			"suspend the account, accept the event, and open another account for what is left", ledger.Damage())
	}
	return err
}

// RecordCheck keeps the result of a check by an operator's command.
func (c *Core) RecordCheck(ctx context.Context, took time.Duration, out fsck.Result) error {
	if err := invariantcheck.Record(ctx, c.DB, oversight.OnCommandLine("humanqa fsck"), took, out.Result); err != nil {
		return err
	}
	return c.Signer().Found(ctx, fsck.Unsigned(out.Findings))
}

// auditedAt is the moment to judge deadlines by. A stopped service settles nothing. The
// deadlines that ran when it stopped, or when its backup was taken, have not passed for
// it.
func (c *Core) auditedAt(ctx context.Context) (time.Time, error) {
	now := time.Now()
	if c.Served || c.serves || c.node == nil {
		return now, nil
	}
	// The event that tells of a restore comes from no service.
	last, err := store.LastWritten(ctx, c.DB, (*origin.Restored)(nil).EventType())
	if err != nil || last.After(now) {
		return now, err
	}
	return last, nil
}

// Installation names the parts of this core for a check.
func (c *Core) Installation() fsck.Installation {
	return fsck.Installation{
		DB: c.DB, Lent: c.Lent, Log: c.Log, Vault: c.Vault, Signer: c.Signer(), EvidenceURL: c.Config.EvidenceURL, Now: c.auditedAt,
		Embedded: c.Config.EventStoreURL == "", Notes: filepath.Join(c.Config.DataDir, "evidence-check.json"),
	}
}
