package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"

	"humanqa/eventstore/node/store"
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
	// MaxAppendSize is how many bytes of data, metadata and names one append may carry,
	// between MinAppendSize and MaxAppendSize; 0 is MinAppendSize.
	MaxAppendSize int
	// Connections is how many sessions at Postgres the node has at most, MinConnections at
	// least; 0 is DefaultConnections.
	Connections int
	// Log is required.
	Log logrus.FieldLogger
	// Registerer receives the node's metrics, if set.
	Registerer prometheus.Registerer
}

// Two of the node's sessions are the writer's; the others read.
const (
	MinConnections     = store.MinConnections
	DefaultConnections = 14
)

// Node is a running event store.
type Node struct {
	config    Config
	log       logrus.FieldLogger
	id        uuid.UUID
	store     *store.Store
	metrics   *metrics
	endpoints []*endpoint
	identity  *identityFile // of the TLS address, nil without one

	subscriptions subscriptions
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
	c.MaxAppendSize = cmp.Or(c.MaxAppendSize, MinAppendSize)
	if c.MaxAppendSize < MinAppendSize || c.MaxAppendSize > MaxAppendSize {
		return nil, fmt.Errorf("start the event store node: an append is bounded between %d and %d bytes, not %d",
			MinAppendSize, MaxAppendSize, c.MaxAppendSize)
	}
	n := &Node{config: c, log: c.Log, id: uuid.New(), closing: make(chan struct{})}
	n.metrics = newMetrics(n.furthestBehind)
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
	connections := cmp.Or(n.config.Connections, DefaultConnections)
	if n.store, err = store.Open(ctx, n.config.DSN, advertised(n.config.Listen), connections, n.log, n.metrics.own); err != nil {
		return err
	}
	if err := n.metrics.show(n.config.Registerer); err != nil {
		return err
	}
	if n.endpoints, err = n.listen(ctx); err != nil {
		return err
	}
	for _, e := range n.endpoints {
		n.serving.Go(func() { e.serve(n.log) })
	}
	return nil
}

// register puts the node's services on a server. Everything else the protocol
// has answers Unimplemented.
func (n *Node) register(server *grpc.Server, host string) {
	streams.RegisterStreamsServer(server, &streamsServer{node: n})
	serverfeatures.RegisterServerFeaturesServer(server, &featuresServer{})
	gossip.RegisterGossipServer(server, &gossipServer{node: n, host: host})
}

// Head is the position of the last committed event; zero for an empty log.
func (n *Node) Head() int64 { return n.store.Head() }

func (n *Node) isClosing() bool {
	select {
	case <-n.closing:
		return true
	default:
		return false
	}
}

// Close ends subscriptions, lets calls and the group in flight finish, and
// gives the lock back. When ctx ends first the calls are cut off; appends that had
// reached the writer are still written. No goroutine is left.
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

// release gives back all resources of the node, also after an incomplete start.
func (n *Node) release() {
	for _, e := range n.endpoints {
		e.close()
	}
	n.serving.Wait()
	n.background.Wait()
	if n.store != nil {
		n.store.Close()
	}
	n.metrics.unregister()
}
