package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/lib/pq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
	"humanqa/internal/pgpool"
)

const (
	// writers is how many connections the writer has: one that holds the lock, and one for
	// lookups.
	writers = 2
	// MinConnections leaves one for reads.
	MinConnections = writers + 1
	// readPatience is how long a read waits for a Postgres that does not answer.
	readPatience = 10 * time.Second
	// lockPatience is how long Open waits for the lock of a node that died
	// without Postgres having noticed yet.
	lockPatience = 5 * time.Second
	// Between two tries it waits longer each time: a node that stands by asks for days.
	lockRetryFirst, lockRetryLast = 50 * time.Millisecond, 500 * time.Millisecond
)

// Store keeps the events of one log. It may be used by many goroutines.
type Store struct {
	*pages
	*tail
	term

	writerDB *sql.DB
	readerDB *sql.DB
	writer   *writer
}

// Open takes the writer's lock of a migrated database, whose dsn is a Postgres URL or keyword
// string, and has at most so many connections. If another process keeps the lock it returns
// ErrLocked after a few seconds. ctx bounds only the opening. address is where clients reach
// this node, empty if they cannot; other nodes are told it. The registerer receives the
// writer's metrics, and is for this store alone.
func Open(
	ctx context.Context, dsn, address string, connections int, log logrus.FieldLogger, registerer prometheus.Registerer,
) (*Store, error) {
	s := &Store{}
	if err := s.open(ctx, dsn, address, connections, log, registerer); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(
	ctx context.Context, dsn, address string, connections int, log logrus.FieldLogger, registerer prometheus.Registerer,
) error {
	var err error
	if s.writerDB, err = openDB(dsn, writers, dialer{commitTimeout}); err != nil {
		return err
	}
	if s.readerDB, err = openDB(dsn, connections-writers, dialer{readPatience}); err != nil {
		return err
	}
	own := &candidate{address: address}
	session, err := lockSession(ctx, s.writerDB, own)
	if err != nil {
		return err
	}
	s.tail = newTail(session.head)
	s.begin()
	lookups, err := prepareLookups(ctx, s.writerDB)
	if err != nil {
		session.close()
		return err
	}
	s.writer = &writer{
		db: s.writerDB, lookups: lookups, session: session, candidate: own, refusal: ErrUnavailable, states: newStates(),
		tail: s.tail, term: &s.term, metrics: newMetrics(registerer, s.Head), log: log,
		queue: make(chan *Write, queueLength), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go s.writer.runSessions()
	s.pages, err = preparePages(ctx, s.readerDB)
	return err
}

// Submit hands a write to the writer and waits for its outcome. A caller that
// gives up undoes nothing: the outcome is then unknown to it.
func (s *Store) Submit(w *Write) (Outcome, error) {
	if err := s.Enqueue(w); err != nil {
		return Outcome{}, err
	}
	return s.Await(w)
}

// Enqueue hands a write to the writer. Writes are decided in the order in which they
// are handed over.
func (s *Store) Enqueue(w *Write) error {
	select {
	case s.writer.queue <- w:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	case <-s.writer.done:
		return ErrClosed
	}
}

// Await waits for the outcome of a write that was handed over. One that has come is told, even
// if the write's context or the store has ended meanwhile.
func (s *Store) Await(w *Write) (Outcome, error) {
	var over error
	select {
	case out := <-w.done:
		return out, out.err
	case <-w.ctx.Done():
		over = w.ctx.Err()
	case <-s.writer.done:
		over = ErrClosed
	}
	select {
	case out := <-w.done:
		return out, out.err
	default:
		return Outcome{}, over
	}
}

// Close writes the writes that were handed over, and gives the lock back. No write may be
// handed over any more, and reads must be over.
func (s *Store) Close() {
	if s.writer != nil {
		close(s.writer.stop)
		<-s.writer.done
	}
	for _, db := range []*sql.DB{s.readerDB, s.writerDB} {
		if db != nil {
			// Nothing to save: reads are over and the writer has closed its session.
			_ = db.Close()
		}
	}
}

// lockSession waits for the lock for a while: a predecessor that was killed
// holds it until Postgres finds the connection dead.
func lockSession(ctx context.Context, db *sql.DB, c *candidate) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	var locked error
	for try := 1; ; try++ {
		s, err := openSession(ctx, db, c)
		switch {
		case errors.Is(err, errFormer):
		case errors.Is(err, ErrLocked):
			locked = err
		case err != nil && locked != nil: // Postgres restarts, or the time is over
		default:
			return s, err
		}
		if backoff.Wait(ctx, backoff.Delay(try, lockRetryFirst, lockRetryLast)) != nil {
			return nil, cmp.Or(locked, ErrLocked)
		}
	}
}

// sessionSettings makes Postgres plan each prepared statement once, and with the two
// indexes. Every statement of the node is made for them, and a plan for a small
// table must not be kept when the table has grown. With the keepalives Postgres notices within
// seconds that the machine of the lock's holder is gone; its default is two hours.
const sessionSettings = `SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off;`

// openDB opens a pool whose connections pass []byte as binary. dial may be nil.
func openDB(dsn string, size int, dial pq.Dialer) (*sql.DB, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	config.BinaryParameters = true
	config.ApplicationName = cmp.Or(config.ApplicationName, "humanqa-eventlog")
	connector, err := pgpool.Connector(config, dial, sessionSettings)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(pgpool.IdleTime)
	return db, nil
}
