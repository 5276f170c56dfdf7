package eventstore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errCondemned says that a call was not begun, because its connection turned
// bad in the meantime.
var errCondemned = errors.New("the connection was replaced")

// gate keeps calls out of a library client that is about to look for its node
// again. Such a client forgets its gRPC connection without closing it. It holds every
// caller until it found the node, and ignores their contexts. Its own error handling
// orders the look, and the next call that asks for the connection starts it. So no call
// may ask once an error was handled.
//
// Two habits of the pinned version (gate_test.go) show that. It logs an error before it
// acts on it. A call with a connection first puts a deadline on its context.
type gate struct {
	entering  sync.RWMutex // read-held by calls that have no connection yet
	condemned bool         // guarded by entering
}

// condemn lets the calls inside get their connection, and lets no further call in.
func (g *gate) condemn() {
	g.entering.Lock()
	g.condemned = true
	g.entering.Unlock()
}

// enter lets a call in. It must use the context it is given, and leave when it
// is over.
func (g *gate) enter(ctx context.Context) (inner context.Context, leave func(), err error) {
	g.entering.RLock()
	if g.condemned {
		g.entering.RUnlock()
		return nil, nil, errCondemned
	}
	e := &entering{Context: ctx, gate: g}
	return e, e.pass, nil
}

// entering is a call's context that tells when the call has its connection.
type entering struct {
	context.Context
	gate *gate
	once sync.Once
}

func (e *entering) pass() { e.once.Do(e.gate.entering.RUnlock) }

// Deadline is asked for when a deadline is put on the context.
func (e *entering) Deadline() (time.Time, bool) {
	e.pass()
	return e.Context.Deadline()
}

// libraryLog sends the log of conn's library client to ours, at debug: an error that
// matters also comes back to the caller, which knows its meaning and logs it. It also
// takes a connection that failed out of service in time.
func (k *connector) libraryLog(conn *connection) esdb.LoggingFunc {
	return func(level esdb.LogLevel, format string, args ...any) {
		// Other messages may come from the library's own goroutine, which must
		// not wait for callers.
		if level == esdb.LogError && strings.HasPrefix(format, "unexpected exception") && len(args) == 1 {
			if err, ok := args[0].(error); ok && status.Code(err) == codes.Unavailable {
				conn.gate.condemn()
				k.mu.Lock()
				k.retire(conn)
				k.mu.Unlock()
			}
		}
		k.log.Debugf("client library: "+format, args...)
	}
}
