package node

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"humanqa/internal/backoff"
	"maps"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
)

const (
	// readers bounds the connections reads use; the writer has its own two, one
	// that holds the lock and one for lookups.
	readers = 12
	writers = 2
	// lockPatience is how long Start waits for the lock of a node that died
	// without Postgres having noticed yet.
	lockPatience = 5 * time.Second
	lockRetry    = 50 * time.Millisecond
)

// Config says where the node keeps its events and where it listens. At least
// one of Socket, Listen and InsecureListen is needed.
type Config struct {
	// DSN is a Postgres URL or keyword string of a migrated database.
	DSN string
	// Socket is the path of a unix socket, made with mode 0600. No password.
	Socket string
	// Listen is a TCP address served with TLS and a password.
	Listen string
	// InsecureListen is a loopback TCP address served without either.
	InsecureListen string
	// CertDir keeps the certificate and the password's hash of Listen. They are
	// made there on first use.
	CertDir string
	// MaxAppendSize is how many bytes of data one append may carry, between
	// MinAppendSize and MaxAppendSize; 0 is MaxAppendSize.
	MaxAppendSize int
	// Log is required.
	Log logrus.FieldLogger
	// Registerer receives the node's metrics, if set.
	Registerer prometheus.Registerer
}

// Node is a running event store.
type Node struct {
	config    Config
	log       logrus.FieldLogger
	id        uuid.UUID
	writerDB  *sql.DB
	readerDB  *sql.DB
	writer    *writer
	tail      *tail
	pages     *pages
	metrics   *metrics
	endpoints []*endpoint
	identity  *identityFile // of the TLS address, nil without one
	// closing is closed when the node begins to close: it ends subscriptions.
	closing   chan struct{}
	closeOnce sync.Once
	// serving are the accept loops, background the goroutines of handlers.
	serving    sync.WaitGroup
	background sync.WaitGroup
}

// Start takes the writer's lock and begins to serve. If another node keeps the
// lock it returns ErrLocked after a few seconds. ctx bounds only the start.
func Start(ctx context.Context, c Config) (*Node, error) {
	if c.MaxAppendSize == 0 {
		c.MaxAppendSize = MaxAppendSize
	}
	if c.MaxAppendSize < MinAppendSize || c.MaxAppendSize > MaxAppendSize {
		return nil, fmt.Errorf("start the event store node: an append is bounded between %d and %d bytes, not %d",
			MinAppendSize, MaxAppendSize, c.MaxAppendSize)
	}
	n := &Node{config: c, log: c.Log, id: uuid.New(), closing: make(chan struct{})}
	if err := n.start(ctx); err != nil {
		n.release()
		return nil, fmt.Errorf("start the event store node: %w", err)
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	if n.config.Socket == "" && n.config.Listen == "" && n.config.InsecureListen == "" {
		return errors.New("no address to listen on")
	}
	var err error
	if n.writerDB, err = openDB(n.config.DSN, writers, dialer{commitTimeout}); err != nil {
		return err
	}
	if n.readerDB, err = openDB(n.config.DSN, readers, nil); err != nil {
		return err
	}
	session, err := lockSession(ctx, n.writerDB)
	if err != nil {
		return err
	}
	n.tail = newTail(session.head)
	if n.metrics, err = newMetrics(n.config.Registerer, n.tail.lastPosition); err != nil {
		session.close()
		return err
	}
	lookups, err := prepareLookups(ctx, n.writerDB)
	if err != nil {
		session.close()
		return err
	}
	n.writer = &writer{
		db: n.writerDB, lookups: lookups, session: session, refusal: errUnavailable, states: newStates(), tail: n.tail, metrics: n.metrics, log: n.log,
		queue: make(chan *write, queueLength), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go n.writer.run()
	if n.pages, err = preparePages(ctx, n.readerDB); err != nil {
		return err
	}
	if n.endpoints, err = n.listen(ctx); err != nil {
		return err
	}
	for _, e := range n.endpoints {
		n.serving.Go(func() {
			if err := e.server.Serve(e.listener); err != nil {
				n.log.WithError(err).WithField("address", e.address).Error("the event store node stopped listening")
			}
		})
	}
	return nil
}

// lockSession waits for the lock for a while: a predecessor that was killed
// holds it until Postgres finds the connection dead.
func lockSession(ctx context.Context, db *sql.DB) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	end, _ := ctx.Deadline()
	locked := false
	for {
		s, err := openSession(ctx, db)
		switch {
		case errors.Is(err, ErrLocked):
			locked = true
		case err != nil && locked && (ctx.Err() != nil || !time.Now().Before(end)):
			// The last attempt ran into the time limit; a dialer compares the clock
			// itself, and may say so before the context does.
			return nil, ErrLocked
		default:
			return s, err
		}
		if backoff.Wait(ctx, lockRetry) != nil {
			return nil, ErrLocked
		}
	}
}

// planning makes Postgres plan each prepared statement once, and along the two
// indexes: every statement of the node is made for them, and a plan chosen
// while the table was still small must not outlive that.
var planning = map[string]string{
	"plan_cache_mode":   "force_generic_plan",
	"enable_seqscan":    "off",
	"enable_bitmapscan": "off",
	"enable_sort":       "off",
}

// openDB opens a pool whose connections pass []byte as binary. dial may be nil.
func openDB(dsn string, size int, dial pq.Dialer) (*sql.DB, error) {
	config, err := pq.NewConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	config.BinaryParameters = true
	if config.ApplicationName == "" {
		config.ApplicationName = "humanqa-eventlog"
	}
	if config.Runtime == nil {
		config.Runtime = map[string]string{}
	}
	maps.Copy(config.Runtime, planning)
	connector, err := pq.NewConnectorConfig(config)
	if err != nil {
		return nil, fmt.Errorf("read the database url: %w", err)
	}
	if dial != nil {
		connector.Dialer(dial)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// register puts the node's services on a server. Everything else the protocol
// has answers Unimplemented.
func (n *Node) register(server *grpc.Server, host string) {
	streams.RegisterStreamsServer(server, &streamsServer{node: n})
	serverfeatures.RegisterServerFeaturesServer(server, &featuresServer{})
	gossip.RegisterGossipServer(server, &gossipServer{node: n, host: host})
}

// Head is the position of the last committed event; zero for an empty log.
func (n *Node) Head() int64 { return n.tail.lastPosition() }

func (n *Node) isClosing() bool {
	select {
	case <-n.closing:
		return true
	default:
		return false
	}
}

// Close ends subscriptions, lets calls and the group in flight finish, and
// gives the lock back. When ctx ends first the calls are cut off; what had
// reached the writer is still written. No goroutine is left.
func (n *Node) Close(ctx context.Context) error {
	n.closeOnce.Do(func() {
		close(n.closing)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for _, e := range n.endpoints {
				e.server.GracefulStop()
			}
		}()
		select {
		case <-stopped:
		case <-ctx.Done():
			for _, e := range n.endpoints {
				e.server.Stop()
			}
			<-stopped
		}
		n.release()
	})
	return ctx.Err()
}

// release gives back what was acquired, also after half a start.
func (n *Node) release() {
	for _, e := range n.endpoints {
		e.close()
	}
	n.serving.Wait()
	n.background.Wait()
	if n.writer != nil {
		close(n.writer.stop)
		<-n.writer.done
	}
	for _, db := range []*sql.DB{n.readerDB, n.writerDB} {
		if db != nil {
			// Nothing to save: reads are over and the writer has closed its session.
			_ = db.Close()
		}
	}
	n.metrics.unregister()
}
