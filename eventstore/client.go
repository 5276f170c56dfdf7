package eventstore

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/sirupsen/logrus"
)

const (
	// connections is how many HTTP/2 connections calls are spread over: one
	// connection writes its frames one after the other and tops out below what
	// the node can take.
	connections = 4
	// closeTimeout is how long Close waits for calls to come back.
	closeTimeout = 5 * time.Second
)

// limits say how long things may take.
type limits struct {
	// call is for one attempt of a call, or one step of a read: after it the
	// node counts as hung.
	call time.Duration
	// patience is how long an operation is tried again before it is given up.
	patience time.Duration
	// quiet is how long a subscription may bring nothing before the log is
	// asked whether there is nothing.
	quiet time.Duration
}

var defaultLimits = limits{call: 5 * time.Second, patience: 15 * time.Second, quiet: 10 * time.Second}

// Client speaks to one log. It implements domain.Log and is safe for
// concurrent use; Close ends all its goroutines.
type Client struct {
	pool []*connector
	next atomic.Uint64
	log  logrus.FieldLogger
	limits
}

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
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return nil, fmt.Errorf("event store connection string: %w", err)
	}
	if config.Username != "" && config.DisableTLS {
		log.Warn("the event store's credentials are not used: they are only sent over tls")
	}
	return open(*config, defaultLimits, log), nil
}

// OpenSocket prepares a client for the embedded node's unix socket.
func OpenSocket(path string, log logrus.FieldLogger) (*Client, error) {
	if path == "" {
		return nil, errors.New("event store socket: empty path")
	}
	return open(socketConfig(path), defaultLimits, log), nil
}

func socketConfig(path string) esdb.Configuration {
	return esdb.Configuration{
		Address:           "unix:" + path,
		DisableTLS:        true,
		GossipTimeout:     5,
		KeepAliveInterval: 10 * time.Second,
		KeepAliveTimeout:  10 * time.Second,
		NodePreference:    esdb.NodePreferenceLeader,
	}
}

func open(config esdb.Configuration, limits limits, log logrus.FieldLogger) *Client {
	log = log.WithField("component", "eventstore")
	// What is waited for between two looks for the node; see connector.
	config.DiscoveryInterval = 200
	config.MaxDiscoverAttempts = math.MaxInt
	c := &Client{log: log, limits: limits, pool: make([]*connector, connections)}
	for i := range c.pool {
		c.pool[i] = newConnector(config, limits.call, log)
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

// connector gives the next connection of the pool, in turn.
func (c *Client) connector() *connector {
	return c.pool[c.next.Add(1)%uint64(len(c.pool))]
}
