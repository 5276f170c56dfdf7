package eventstore

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/sirupsen/logrus"

	"humanqa/eventstore/mac"
	"humanqa/internal/tracing"
)

const (
	// connections is the number of HTTP/2 connections that share the calls: one
	// connection writes its frames one after the other, and cannot use all that
	// the node can take.
	connections = 4
	// Patience is how long an operation is usually tried again before it is given up.
	Patience = 15 * time.Second
	// closeTimeout is how long Close waits for calls to come back.
	closeTimeout = 5 * time.Second
)

// limits say how long things may take.
type limits struct {
	// call is for one attempt of a call, or one step of a read: after it the
	// node counts as hung.
	call     time.Duration
	patience time.Duration // see Patience
	// quiet is how long a subscription may bring no event before the log is
	// asked whether it has a newer one.
	quiet time.Duration
	// suspect is how long a node of a cluster may keep a caller waiting before it gets
	// a simple request, and also how long it may take to answer that.
	suspect time.Duration
}

var defaultLimits = limits{call: Patience / 3, patience: Patience, quiet: 10 * time.Second, suspect: 1500 * time.Millisecond}

// Settings of a connection to a cluster, unless its address says otherwise. The
// library's own are made for servers far away, and would delay a fail-over. An
// interval between keepalives below 10 s is not possible.
const (
	gossipTimeout     = 1 // s
	keepAliveTimeout  = 3 * time.Second
	discoveryInterval = 200 // ms between two looks for the node, see connector
)

// tuned sets the settings that the connection string leaves open.
func tuned(config *esdb.Configuration, connection string) {
	_, query, _ := strings.Cut(connection, "?")
	set := func(name string) bool {
		return slices.ContainsFunc(strings.Split(query, "&"), func(pair string) bool {
			key, _, _ := strings.Cut(pair, "=")
			return strings.EqualFold(key, name)
		})
	}
	if !set("discoveryInterval") {
		config.DiscoveryInterval = discoveryInterval
	}
	if !set("keepAliveTimeout") {
		config.KeepAliveTimeout = keepAliveTimeout
	}
	if !set("gossipTimeout") && isCluster(config) {
		config.GossipTimeout = gossipTimeout
	}
}

// isCluster says that there may be another node to go to.
func isCluster(config *esdb.Configuration) bool {
	return config.DnsDiscover || len(config.GossipSeeds) > 0
}

// Client speaks to one log. It implements domain.Log and is safe for
// concurrent use; Close ends all its goroutines.
type Client struct {
	pool []*connector
	next atomic.Uint64
	full atomic.Bool // the log refused an append for want of room
	macs mac.Keys
	// bound is the log's newest statement about its key that was read here.
	bound struct {
		sync.Mutex
		Bound
		read bool
	}
	log logrus.FieldLogger
	// sealer keeps customers' own words from readers of the bare log; nil: they are not sealed.
	sealer Sealer
	tracer *tracing.Tracer // nil: no spans
	limits
}

// TraceWith makes appends of traced requests record spans. It is called before the client is used.
func (c *Client) TraceWith(t *tracing.Tracer) { c.tracer = t }

// Open prepares a client for an esdb:// (or esdb+discover://) connection
// string; kurrentdb:// and kurrentdb+discover:// are the same. It does not dial:
// the first call does.
func Open(connection string, log logrus.FieldLogger) (*Client, error) {
	if rest, newer := strings.CutPrefix(connection, "kurrentdb"); newer {
		// The successor's name for the same protocol, which this client line
		// does not know.
		log.Info("the event store's kurrentdb:// address is read as esdb://: the protocol is the same")
		connection = "esdb" + rest
	}
	config, err := esdb.ParseConnectionString(connection)
	if err != nil {
		// A url.Error repeats the whole string, password included.
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fmt.Errorf("event store connection string: %w", err)
	}
	if config.Username != "" && config.DisableTLS {
		log.Warn("the event store's credentials are not used: they are only sent over tls")
	}
	tuned(config, connection)
	return open(*config, defaultLimits, log), nil
}

// OpenSocket prepares a client for the embedded node's unix socket. It tries operations for as long as patience.
func OpenSocket(path string, patience time.Duration, log logrus.FieldLogger) (*Client, error) {
	if path == "" {
		return nil, errors.New("event store socket: empty path")
	}
	limits := defaultLimits
	limits.call, limits.patience = patience/3, patience
	return open(socketConfig(path), limits, log), nil
}

func socketConfig(path string) esdb.Configuration {
	return esdb.Configuration{
		Address:           "unix:" + path,
		DisableTLS:        true,
		GossipTimeout:     5,
		DiscoveryInterval: discoveryInterval,
		KeepAliveInterval: 10 * time.Second,
		KeepAliveTimeout:  10 * time.Second,
		NodePreference:    esdb.NodePreferenceLeader,
	}
}

func open(config esdb.Configuration, limits limits, log logrus.FieldLogger) *Client {
	log = log.WithField("component", "eventstore")
	config.MaxDiscoverAttempts = math.MaxInt // see connector
	c := &Client{log: log, limits: limits, pool: make([]*connector, connections)}
	for i := range c.pool {
		c.pool[i] = newConnector(config, limits.call, log)
		if isCluster(&config) {
			c.pool[i].suspect, c.pool[i].others = limits.suspect, c.lookAtAll
		}
	}
	return c
}

// Close ends running calls and closes every connection. It reports calls that
// did not come back.
func (c *Client) Close() error {
	for _, k := range c.pool {
		k.shut()
	}
	deadline := time.NewTimer(closeTimeout)
	defer deadline.Stop()
	for _, k := range c.pool {
		select {
		case <-k.drained:
		case <-deadline.C:
			return errors.New("close event store client: a call did not come back")
		}
	}
	return nil
}

// lookAtAll looks at every connection that is in service.
func (c *Client) lookAtAll() {
	for _, k := range c.pool {
		go k.lookAtLive()
	}
}

// connector gives the next connection of the pool, in turn.
func (c *Client) connector() *connector {
	return c.pool[c.next.Add(1)%uint64(len(c.pool))]
}
