package pgpool

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"time"

	"github.com/jmoiron/sqlx"
)

type (
	pipelinedKey struct{}
	laterKey     struct{}
)

// InTxPipelined is InTx that spares round trips: its BEGIN goes out with its first
// statement, and so does each that is run with Later(ctx) with the next one, the COMMIT
// at latest. What f is given is in ctx. An error comes where an answer is waited for, so
// it may be that of an earlier statement; nothing is committed then.
//
// A connection that Postgres has closed meanwhile is an error of f's, too.
func InTxPipelined(ctx context.Context, db *sqlx.DB, f func(context.Context, *sqlx.Tx) error) error {
	return inTx(context.WithValue(ctx, pipelinedKey{}, true), db, "", f)
}

// Later is for an Exec whose result, and whose error, may wait for the next statement of
// its transaction. In a transaction that is not pipelined it changes nothing.
func Later(ctx context.Context) context.Context {
	if ctx.Value(pipelinedKey{}) == nil {
		return ctx
	}
	return later(ctx)
}

func later(ctx context.Context) context.Context { return context.WithValue(ctx, laterKey{}, true) }

// heldMost is how many bytes of requests are held back at a time.
const heldMost = 256 << 10

// wire is the driver's connection to Postgres. The driver waits for the answer to each
// request; one that is held back it is told to have succeeded, and the request goes out
// in front of the next one. The answers to both come back as one: that of the last, or
// the first failure, behind which Postgres runs nothing more of the transaction.
//
// Like the driver's connection it is one goroutine's at a time, but for a COPY, of which
// nothing is held back.
type wire struct {
	net.Conn
	from *bufio.Reader

	started bool
	plain   bool   // requests can be read here: there is no TLS
	hold    bool   // the next request is held back
	held    []byte // requests
	holds   int    // how many
	owed    int    // answers to those that have gone out
	ready   []byte // answers for the driver to read
}

// wireDialer makes the driver's connections; that of a pool's connection is told to
// whoever asked for it in the context.
type wireDialer struct{}

type wireKey struct{}

// DialContext implements pq.DialerContext.
func (wireDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	made, asked := ctx.Value(wireKey{}).(**wire)
	if err != nil || !asked {
		return c, err
	}
	*made = &wire{Conn: c, from: bufio.NewReader(c)}
	return *made, nil
}

// Dial implements pq.Dialer; the driver uses DialContext.
func (d wireDialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialTimeout implements pq.Dialer; the driver uses DialContext.
func (wireDialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	return d.DialContext(context.Background(), network, address)
}

// The messages of Postgres' protocol that are looked at: a byte for what it is, its
// length, itself included, and what it says.
const (
	msgBind         = 'B'
	msgQuery        = 'Q'
	msgBindComplete = '2'
	msgComplete     = 'C'
	msgReady        = 'Z'
	msgError        = 'E'
	msgNotice       = 'N'
	msgParameter    = 'S'
	msgNotification = 'A'

	msgHead = 5

	// protocolMajor is in the first request, unless that asks for TLS.
	protocolMajor = 3
)

// Write implements net.Conn. The driver writes whole requests.
func (w *wire) Write(p []byte) (int, error) {
	if !w.started && len(p) >= 8 {
		w.started, w.plain = true, binary.BigEndian.Uint16(p[4:]) == protocolMajor
	}
	if w.hold && w.plain && len(w.held)+len(p) <= heldMost && (p[0] == msgBind || p[0] == msgQuery) {
		w.held = append(w.held, p...)
		w.holds++
		w.ready = append(w.ready, success(p)...)
		return len(p), nil
	}
	if w.holds == 0 {
		return w.Conn.Write(p)
	}
	w.held = append(w.held, p...)
	n, err := w.Conn.Write(w.held)
	w.owed, w.holds, w.held = w.owed+w.holds, 0, w.held[:0]
	return min(n, len(p)), err
}

// success is what the driver is told of a request within a transaction.
func success(request []byte) (answer []byte) {
	tag := "INSERT 0 0"
	if request[0] == msgBind {
		answer = message(answer, msgBindComplete, "")
	} else if tag = "SET"; bytes.HasPrefix(request[msgHead:], []byte("BEGIN")) {
		tag = "BEGIN"
	}
	return message(message(answer, msgComplete, tag+"\x00"), msgReady, "T")
}

func message(to []byte, what byte, says string) []byte {
	to = binary.BigEndian.AppendUint32(append(to, what), uint32(len(says)+4))
	return append(to, says...)
}

// Read implements net.Conn.
func (w *wire) Read(p []byte) (int, error) {
	if w.owed > 0 && len(w.ready) == 0 {
		if err := w.settle(); err != nil && len(w.ready) == 0 {
			return 0, err
		}
	}
	if len(w.ready) == 0 {
		return w.from.Read(p)
	}
	n := copy(p, w.ready)
	if w.ready = w.ready[n:]; len(w.ready) == 0 {
		w.ready = nil
	}
	return n, nil
}

// settle reads the answers to what was held back. If one is a failure it is the answer to
// what the driver waits for.
func (w *wire) settle() error {
	var failed []byte
	for last := false; ; {
		m, err := w.next()
		if err != nil {
			w.ready, w.owed = append(w.ready, failed...), 0
			return err
		}
		switch m[0] {
		case msgNotice, msgParameter, msgNotification: // may come at any time
			w.ready = append(w.ready, m...)
		case msgError:
			if failed == nil {
				failed = m
			}
		case msgReady:
			if last {
				w.ready = append(append(w.ready, failed...), m...)
				return nil
			}
			if w.owed--; w.owed == 0 {
				if failed == nil {
					return nil
				}
				last = true
			}
		}
	}
}

// next reads a message.
func (w *wire) next() ([]byte, error) {
	head, err := w.from.Peek(msgHead)
	if err != nil {
		return nil, err
	}
	m := make([]byte, 1+int(binary.BigEndian.Uint32(head[1:])))
	_, err = io.ReadFull(w.from, m)
	return m, err
}
