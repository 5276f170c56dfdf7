package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/clustertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// sightings writes down every event that comes, in the order in which it comes.
// One that comes twice stops the line.
type sightings struct{}

func (sightings) Name() string      { return "sightings" }
func (sightings) Version() int      { return 1 }
func (sightings) Handles() []string { return eventstore.Types() }

func (sightings) Tables() []consumer.Table {
	return []consumer.Table{{Name: "sightings", DDL: `CREATE TABLE {schema}.sightings (n bigint GENERATED ALWAYS AS IDENTITY, id uuid PRIMARY KEY)`}}
}

func (sightings) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var ids []string
	for _, r := range batch {
		ids = append(ids, r.ID.String())
	}
	_, err := tx.ExecContext(ctx, consumer.In(schema, `INSERT INTO {schema}.sightings (id) SELECT unnest($1::uuid[])`), pq.Array(ids))
	return err
}

// drops counts the subscriptions that the feed says were dropped as too slow.
type drops struct{ n atomic.Int64 }

func (*drops) Levels() []logrus.Level { return logrus.AllLevels }

func (d *drops) Fire(e *logrus.Entry) error {
	if err, ok := e.Data[logrus.ErrorKey].(error); ok && strings.Contains(err.Error(), "Consumer too slow to handle event while live") {
		d.n.Add(1)
	}
	return nil
}

// untilAnswered does again what found no answer in the time of production.
func untilAnswered(do func() error) error {
	for end := time.Now().Add(eventually.Patience); ; {
		err := do()
		unanswered := errors.Is(err, domain.ErrUnknownOutcome) || domain.IsKind(err, domain.KindUnavailable)
		if !unanswered || time.Now().After(end) {
			return err
		}
	}
}

// On a cluster, while 2,000 events a second are appended, a live subscription is
// dropped as too slow again and again. The feed subscribes again behind the last
// event it saw: what follows it sees every event once, in the log's order.
func TestASubscriptionThatIsDroppedAsTooSlowAtTwoThousandEventsASecondLosesNothing(t *testing.T) {
	t.Parallel()
	const (
		writers, perAppend = 4, 20
		rate, seconds      = 2000, 1
		appends            = rate * seconds / writers / perAppend
		every              = 200 * time.Millisecond
	)
	w := modeltest.New(t)
	address, _, _ := strings.Cut(strings.TrimPrefix(logtest.Server(t, pgtest.DSN(t, w.DB)), "esdb://"), "?")
	cluster := clustertest.New(t, address)
	dropped := &drops{}
	log := logrus.New()
	log.SetOutput(io.Discard)
	log.AddHook(dropped)
	client, err := eventstore.Open(cluster.URL(), log)
	must.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() }) // nothing to save
	feed := eventstore.NewFeed(client, log)
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = feed.Run(ctx) }) // ends with ctx
	t.Cleanup(func() { end(); running.Wait() })
	service := w.Service(feed, sightings{})
	w.Run(service)

	var writing sync.WaitGroup
	began := time.Now()
	for i := range writers {
		writing.Go(func() {
			stream := domain.JobStream(fmt.Sprint("w", i))
			for n := range appends {
				time.Sleep(time.Until(began.Add(time.Duration(n) * seconds * time.Second / appends)))
				events := make([]domain.NewEvent, perAppend)
				for j := range events {
					events[j] = domain.NewEvent{ID: uuid.New(), Event: modeltest.Claimed("ann"), Meta: domain.Metadata{Time: modeltest.Noon}}
				}
				// On a busy machine: the same append once more changes nothing.
				err := untilAnswered(func() error {
					_, err := client.Append(ctx, stream, domain.ExpectedRevision(n*perAppend-1), events)
					return err
				})
				if err != nil {
					t.Errorf("append %d to %s: %v", n, stream, err)
					return
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	for more := true; more; {
		select {
		case <-written:
			more = false
		case <-time.After(every):
			// Whoever is not subscribed, because this machine is slow, is not dropped.
			cluster.Drop()
		}
	}
	took := time.Since(began)
	w.Eventually("a subscription is dropped", func() bool {
		if dropped.n.Load() > 0 {
			return true
		}
		cluster.Drop()
		return false
	})

	var head domain.Position
	must.NoError(t, untilAnswered(func() (err error) {
		head, err = client.Head(w.Ctx())
		return err
	}))
	must.NoError(t, service.WaitFor(w.Ctx(), head))
	var stands, seen []string
	must.NoError(t, client.Walk(w.Ctx(), func(e eventstore.RawEvent) error {
		if !strings.HasPrefix(e.Type, "$") {
			stands = append(stands, e.ID.String())
		}
		return nil
	}))
	must.NoError(t, w.DB.SelectContext(w.Ctx(), &seen, `SELECT id FROM readmodel.sightings ORDER BY n`))
	if len(stands) != rate*seconds || !slices.Equal(seen, stands) {
		t.Errorf("%d events were appended, %d stand in the log, %d were seen, or in another order", rate*seconds, len(stands), len(seen))
	}
	t.Logf("%d events in %s, and %d drops", rate*seconds, took.Round(time.Millisecond), dropped.n.Load())
}
