package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
	"humanqa/eventstore/sharedscan"
)

// tenure is the state of a runner while it owns the lease.
type tenure struct {
	runner      *runner
	lease       *generation.Lease
	skips       map[domain.Position]bool
	aside       map[string]domain.Position // streams that wait, and from which event on
	reporting   bool                       // to the progress tracker
	scanReader  *sharedscan.Reader         // while it is being built, or catches up with the log's end
	applied     int64                      // in this tenure
	lastBatch   time.Time                  // of the last batch
	lastStore   time.Time                  // when the checkpoint was stored
	flipRefused time.Time                  // when a flip was refused last
	atEnd       bool                       // the last page reached the end of the log
	coolsUntil  time.Time                  // until when it goes by itself, caught up or not
	indexed     bool                       // the build has the indexes that readers need
}

// beginReporting tells the progress tracker that this runner serves.
func (t *tenure) beginReporting() {
	t.reporting = true
	t.runner.tracker.addLocalRunner(t.lease.Gen.Name, t.lease.Seen)
}

// endReporting tells the progress tracker that this runner does not serve any more.
func (t *tenure) endReporting() {
	if t.reporting {
		t.reporting = false
		t.runner.tracker.removeLocalRunner(t.lease.Gen.Name)
	}
}

// pageRead is a page, or the error of reading it.
type pageRead struct {
	page eventstore.Page
	err  error
}

// followLog reads and applies events until an error, or until ctx ends.
func (t *tenure) followLog(ctx context.Context) error {
	var err error
	if t.skips, err = generation.LoadSkips(ctx, t.runner.db, t.lease.Gen.Name); err != nil {
		return err
	}
	rows, err := loadAside(ctx, t.runner.db, t.lease.Gen, false)
	if err != nil {
		return err
	}
	t.aside = byStream(rows)
	if p, ok := t.runner.consumer.(Preparer); ok {
		if err := p.Begin(ctx); err != nil {
			return fmt.Errorf("begin: %w", err)
		}
	}
	t.lastStore = time.Now()
	if err := t.promoteWhenReady(ctx); err != nil {
		return err
	}
	if err := t.retrySetAside(ctx, false); err != nil { // this binary may have newer code
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	meter := newMeter(t.lease.Gen)
	report := time.NewTicker(t.runner.limits.Report)
	defer report.Stop()
	pages, reading := make(chan pageRead), false
	defer func() {
		cancel()
		if reading {
			<-pages
		}
	}()
	timer := time.NewTimer(t.storeInterval())
	defer timer.Stop()
	begin := func(from eventstore.Checkpoint) {
		reading = true
		go func(next func(context.Context, eventstore.Checkpoint) (eventstore.Page, error), rest time.Duration) {
			if err := t.runner.tracker.restUnlessAsked(ctx, rest, []string{t.lease.Gen.Name}); err != nil {
				pages <- pageRead{err: err}
				return
			}
			page, err := next(ctx, from)
			pages <- pageRead{page, err}
		}(t.pageSource(), t.restTime())
	}
	for {
		if !reading && t.canShareBatches() {
			t.atEnd = false
			t.leaveScan()
			if err := t.runner.batch.joinBatch(t); err != nil {
				return err
			}
		}
		if !reading {
			begin(t.lease.Seen)
		}
		select {
		case next := <-pages:
			reading = false
			if t.lease.Gen.State == generation.Building && next.err == nil {
				begin(eventstore.At(next.page.Next)) // while Postgres writes this one
			}
			err = t.handlePage(ctx, next)
		case <-t.runner.setAsideDue:
			err = t.retrySetAside(ctx, true)
		case <-timer.C:
			err = t.storeCheckpoint(ctx)
		case <-report.C:
			if t.lease.Gen.State == generation.Building {
				t.logProgress(meter.progress(t.applied, t.lease.Stored, t.runner.source.Head()))
			}
			continue // a report must not put the next store off
		case <-ctx.Done():
			return ctx.Err()
		}
		if err == nil {
			err = t.promoteWhenReady(ctx)
		}
		if err != nil {
			return err
		}
		timer.Reset(t.storeInterval())
	}
}

// canShareBatches says that the shared batch can go on with the work: the generation serves, and
// stands at the end of the log. A generation on an empty log does not share.
func (t *tenure) canShareBatches() bool {
	if t.runner.batch == nil || t.lease.Gen.State != generation.Live || !t.reporting || len(t.runner.setAsideDue) > 0 ||
		time.Now().Before(t.coolsUntil) {
		return false
	}
	head := headOf(t.runner.source)
	return t.atEnd || !head.Start && generation.AtLeast(t.lease.Seen, head)
}

// isBehind says that events wait, such as those of a night without a projector. Before the
// feed has found the log's end, events may wait, so it is true.
func (t *tenure) isBehind() bool {
	head := headOf(t.runner.source)
	return head.Start || !generation.AtLeast(t.lease.Seen, head)
}

// pageSource is the source of the next page. Builds, and tenures that began before the log's
// end, share one scan of the log.
func (t *tenure) pageSource() func(context.Context, eventstore.Checkpoint) (eventstore.Page, error) {
	if t.scanReader != nil {
		return t.scanReader.Next
	}
	return func(ctx context.Context, after eventstore.Checkpoint) (eventstore.Page, error) {
		return t.runner.source.Next(ctx, after, t.runner.limits.Live, t.runner.handles)
	}
}

// restTime is the rest before the next page, so that events gather on a busy log: each
// batch costs Postgres the same few statements, however many events it holds. After a
// quiet moment the first event is applied at once. A lazy consumer gathers at the log's
// end only: before it, enough events wait. A reader of the scan does not rest: others
// wait for it.
func (t *tenure) restTime() time.Duration {
	if t.scanReader != nil {
		return 0
	}
	gather := t.runner.limits.Gather
	if _, lazy := t.runner.consumer.(Lazy); lazy && t.atEnd {
		gather = gatherOf(t.runner.consumer)
	}
	return gather - time.Since(t.lastBatch)
}

// storeInterval is how long the runner may wait for a page before the stored
// checkpoint, and the lease with it, has to be renewed. A build also checks
// whether it has caught up.
func (t *tenure) storeInterval() time.Duration {
	if t.lease.Seen != t.lease.Stored || t.lease.Gen.State == generation.Building {
		return t.runner.limits.Store
	}
	return t.runner.limits.Lease / 3
}

func (t *tenure) logProgress(p Progress) {
	t.runner.log.WithFields(logrus.Fields{
		"position": p.Position.String(), "head": p.Head.String(),
		"events_per_second": int64(p.EventsPerSecond), "eta": p.ETA.String(),
	}).Info("building")
}

// stopLine records the poison event and gives the lease back. It stores the checkpoint
// first, so that a retry starts at the event itself.
func (t *tenure) stopLine(ctx context.Context, failure generation.Failure) error {
	if t.lease.Seen != t.lease.Stored {
		if err := t.storeCheckpoint(ctx); err != nil {
			return err
		}
	}
	if err := t.lease.Stop(ctx, t.runner.db, failure); err != nil {
		return err
	}
	t.runner.log.WithFields(logrus.Fields{
		"category": failure.Category, "position": failure.Position.String(), "detail": failure.Detail,
	}).Error("the line stopped: look at the event, then `humanqa projections retry` or `skip`")
	return errStopped
}
