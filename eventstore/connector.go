package eventstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
)

const (
	minBackoff = 50 * time.Millisecond
	// maxBackoff is short beside an election: a caller that waits for a leader
	// should come soon after there is one.
	maxBackoff = time.Second
	// probeTimeout is how long a new connection may take to prove itself.
	probeTimeout = 10 * time.Second
	// leaveAfter is how long a call may ignore its context before it is left
	// behind.
	leaveAfter = time.Second
	// suspectAfter is how many time-outs in a row retire a connection.
	suspectAfter = 2
)

// connector owns one connection and replaces it when it turned bad. Dialling is
// single-flight and goes on in the background, with backoff, until the node
// answers or the connector is shut.
type connector struct {
	config  esdb.Configuration
	timeout time.Duration // of one call
	// suspect is the silence after which a connection is checked; zero where
	// there is no other node to go to.
	suspect time.Duration
	// others looks at the connections of the other connectors.
	others func()
	log    logrus.FieldLogger

	life context.Context // ends with shut
	end  context.CancelFunc
	// drained is closed once the connector is shut, its connections are closed, and no
	// dial runs.
	drained chan struct{}

	mu      sync.Mutex
	live    *connection   // nil: dial first
	dialing chan struct{} // closed when the running dial succeeded; nil: none runs
	dialErr error         // the error of the last dial
	running int           // connections that are not closed, and a running dial
}

// connection is one library client. Its fields belong to the connector's lock.
type connection struct {
	client *esdb.Client
	gate   gate // has a lock of its own, taken before the connector's
	// calls counts the calls that may be inside the library. The library's Close
	// races with its own calls, so the last call to leave closes a connection.
	calls    int
	retired  bool
	timeouts int // in a row
	looking  bool
	// life ends the calls inside; cut ends life, and so does shut.
	life context.Context
	cut  context.CancelFunc
}

func newConnector(config esdb.Configuration, timeout time.Duration, log logrus.FieldLogger) *connector {
	k := &connector{config: config, timeout: timeout, log: log, drained: make(chan struct{})}
	k.life, k.end = context.WithCancel(context.Background())
	return k
}

// shut stops dialling, cancels every call and closes the connection when they
// are out.
func (k *connector) shut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.life.Err() != nil {
		return
	}
	k.end()
	if k.running == 0 {
		close(k.drained)
	}
	k.retire(k.live)
}

// acquire gives the live connection, waiting for one. Each acquire needs a
// release.
func (k *connector) acquire(ctx context.Context) (*connection, error) {
	for {
		k.mu.Lock()
		if k.life.Err() != nil {
			k.mu.Unlock()
			return nil, ErrClosed
		}
		if conn := k.live; conn != nil {
			conn.calls++
			k.mu.Unlock()
			return conn, nil
		}
		if k.dialing == nil {
			k.dialing = make(chan struct{})
			k.running++
			go k.dial(k.dialing)
		}
		up := k.dialing
		k.mu.Unlock()

		select {
		case <-up:
		case <-k.life.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			k.mu.Lock()
			cause := k.dialErr
			k.mu.Unlock()
			if cause == nil {
				cause = errNoAnswer
			}
			return nil, fmt.Errorf("connect to the event store: %w: %w", ctx.Err(), cause)
		}
	}
}

// release ends a call and learns from how the call ended.
func (k *connector) release(conn *connection, err error) {
	if err != nil {
		switch classify(err) {
		case classReconnect:
			k.mu.Lock()
			k.retire(conn)
			k.mu.Unlock()
		case classTimeout:
			k.blame(conn)
		}
		k.endCall(conn)
		return
	}
	k.mu.Lock()
	conn.timeouts = 0
	k.mu.Unlock()
	k.endCall(conn)
}

// blame counts a time-out against a connection.
func (k *connector) blame(conn *connection) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if conn.timeouts++; conn.timeouts >= suspectAfter {
		k.retire(conn)
	}
}

// endCall ends a call whose result tells nothing about the connection.
func (k *connector) endCall(conn *connection) {
	k.mu.Lock()
	defer k.mu.Unlock()
	conn.calls--
	k.reap(conn)
}

// retire takes a connection out of service; calls inside it may finish. The
// caller holds the lock.
func (k *connector) retire(conn *connection) {
	if conn == nil || conn.retired {
		return
	}
	conn.retired = true
	if k.live == conn {
		k.live = nil
	}
	k.reap(conn)
}

// reap closes a retired connection without a call inside. The caller holds
// the lock.
func (k *connector) reap(conn *connection) {
	if !conn.retired || conn.calls > 0 || conn.client == nil {
		return
	}
	_ = conn.client.Close() // it only signals, and always gives nil
	conn.client = nil
	conn.cut() // no call is inside
	k.done()
}

// done counts down running. The caller holds the lock.
func (k *connector) done() {
	k.running--
	if k.running == 0 && k.life.Err() != nil {
		close(k.drained)
	}
}

// dial connects until it works or the connector is shut.
func (k *connector) dial(up chan struct{}) {
	wait := minBackoff
	for {
		conn, err := k.connect()
		if err == nil || k.life.Err() != nil {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.dialing, k.dialErr = nil, nil
			if conn != nil && k.life.Err() == nil {
				k.live = conn
			} else if conn != nil {
				k.retire(conn)
			}
			k.done()
			close(up)
			return
		}
		k.mu.Lock()
		k.dialErr = err
		k.mu.Unlock()
		k.log.WithError(err).Debug("the event store does not answer")
		wait = pause(k.life, wait)
	}
}

// connect opens a connection that has answered once. It looks for the node with a
// client that gives up at once, since a failed look ends a client for good. The client
// that it keeps never gives up, so no call can be stuck in a dead one.
func (k *connector) connect() (*connection, error) {
	single := k.config
	single.MaxDiscoverAttempts = 1
	conn, err := k.probe(single)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.retire(conn)
	k.mu.Unlock()
	return k.probe(k.config)
}

// probe opens a connection and makes it answer. One that does not is retired,
// and closed when its call comes back.
func (k *connector) probe(config esdb.Configuration) (*connection, error) {
	conn := &connection{calls: 1}
	config.Logger = k.libraryLog(conn)
	client, err := esdb.NewClient(&config)
	if err != nil {
		return nil, err
	}
	conn.client = client
	conn.life, conn.cut = context.WithCancel(k.life)
	k.mu.Lock()
	k.running++
	k.mu.Unlock()

	ctx, cancel := context.WithTimeout(k.life, probeTimeout)
	defer cancel()
	_, err = inside(ctx, k, conn, func(context.Context) (*esdb.ServerVersion, error) {
		return client.GetServerVersion()
	})
	if err != nil {
		k.mu.Lock()
		k.retire(conn)
		k.mu.Unlock()
		return nil, err
	}
	return conn, nil
}

// call runs one call on the connector's connection, for at most its time-out.
// sent says whether it may have reached the node.
func call[T any](ctx context.Context, k *connector, f func(context.Context, *esdb.Client) (T, error)) (result T, sent bool, err error) {
	conn, err := k.acquire(ctx)
	if err != nil {
		return result, false, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, k.timeout, errNoAnswer)
	defer cancel()
	client := conn.client
	result, err = inside(ctx, k, conn, func(ctx context.Context) (T, error) { return f(ctx, client) })
	return result, !errors.Is(err, errCondemned), err
}

// inside runs f, which enters the library, and releases the connection when f
// is out. A call that does not heed its context is left behind: it holds its
// place in the connection until it comes back.
func inside[T any](ctx context.Context, k *connector, conn *connection, f func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		result T
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o.err = fmt.Errorf("%w: %v", errLibrary, r)
			}
			if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errNoAnswer) {
				k.endCall(conn) // the caller left: the error tells nothing about the connection
			} else {
				k.release(conn, o.err)
			}
			out <- o
		}()
		inner, leave, err := conn.gate.enter(ctx)
		if err != nil {
			o.err = err
			return
		}
		defer leave()
		o.result, o.err = f(inner)
	}()

	var none T
	suspicion, stop := k.suspicion()
	defer stop()
waiting:
	for {
		select {
		case o := <-out:
			return o.result, o.err
		case <-suspicion:
			go k.look(conn)
		case <-ctx.Done():
			break waiting
		case <-conn.life.Done():
			cancel()
			break waiting
		}
	}
	grace := time.NewTimer(leaveAfter)
	defer grace.Stop()
	select {
	case o := <-out:
		if o.err != nil && k.life.Err() != nil {
			return none, fmt.Errorf("%w: %w", ErrClosed, o.err)
		}
		return o.result, o.err
	case <-grace.C:
		k.mu.Lock()
		k.retire(conn)
		k.mu.Unlock()
		return none, errNoAnswer
	}
}

// suspicion ticks when the connection of a call without news since the last tick is to
// be checked. It never ticks if there is no other node.
func (k *connector) suspicion() (tick <-chan time.Time, stop func()) {
	if k.suspect == 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(k.suspect)
	return ticker.C, ticker.Stop
}

// look checks whether a node that keeps a caller waiting answers at all: a frozen
// node holds its connections open. If it does not answer, every call inside is ended
// at once. The other connections are checked too, since they may be to the same node.
// Only the live one is checked: a client that still looks for its node may close itself.
func (k *connector) look(conn *connection) {
	k.mu.Lock()
	if k.live != conn || conn.looking {
		k.mu.Unlock()
		return
	}
	conn.looking = true
	conn.calls++
	client := conn.client
	k.mu.Unlock()

	ctx, cancel := context.WithTimeoutCause(conn.life, k.suspect, errNoAnswer)
	defer cancel()
	_, err := inside(ctx, k, conn, func(ctx context.Context) (struct{}, error) { return struct{}{}, readLast(ctx, client) })
	silent := err != nil && errors.Is(context.Cause(ctx), errNoAnswer)
	k.mu.Lock()
	conn.looking = false
	if silent {
		k.retire(conn)
	}
	k.mu.Unlock()
	if silent {
		k.log.Warn("a node of the event store says nothing any more, looking for another")
		conn.cut()
		k.others()
	}
}

// readLast reads the last event of the log, if there is one.
func readLast(ctx context.Context, client *esdb.Client) error {
	read, err := client.ReadAll(ctx, esdb.ReadAllOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
	if err != nil {
		return err
	}
	defer read.Close()
	if _, err := read.Recv(); err != nil && !isEnd(err) {
		return err
	}
	return nil
}

// lookAtLive looks at the connection in service, if there is one.
func (k *connector) lookAtLive() {
	k.mu.Lock()
	conn := k.live
	k.mu.Unlock()
	if conn != nil {
		k.look(conn)
	}
}

// pause waits for about that long, or until ctx ends, and gives the next,
// longer wait.
func pause(ctx context.Context, wait time.Duration) time.Duration {
	_ = backoff.Wait(ctx, backoff.Jitter(wait)) // the next try finds out that ctx has ended
	return min(2*wait, maxBackoff)
}
