package mcptools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Run serves one client, which sends a message a line, until its lines or ctx end. A line
// that is no message is answered with an error, and the next one is read.
func (t *Tools) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	messages, judged := io.Pipe()
	answers := &lines{out: out}
	go func() {
		for all := bufio.NewReader(in); ; {
			line, err := all.ReadBytes('\n')
			line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
			if id, refusal := Judge(line); len(line) > 0 && refusal != nil {
				_, _ = answers.Write(append(Fault(id, refusal), '\n')) // a client that is gone ends its lines
			} else if len(line) > 0 {
				_, _ = judged.Write(append(line, '\n')) // as above
			}
			if err != nil {
				_ = judged.CloseWithError(err) // it never fails
				return
			}
		}
	}()
	return t.Server.Run(ctx, &listening{Transport: &sdk.IOTransport{Reader: messages, Writer: answers}, tools: t})
}

// lines writes a message at a time. Its output stays open.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *lines) Close() error { return nil }

// listening is a transport whose client may listen to tasks.
type listening struct {
	sdk.Transport
	tools *Tools
}

// Connect implements sdk.Transport.
func (l *listening) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := l.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &listeningConn{
		Connection: conn, tools: l.tools, ctx: ctx, stop: stop, open: map[jsonrpc.ID]context.CancelFunc{}, asked: map[jsonrpc.ID]bool{},
	}
	c.settled = sync.NewCond(&c.mu)
	return c, nil
}

// listeningConn takes the requests for notifications of tasks out of a connection. It ends
// only when what was asked before has its answer: the library drops the calls under way.
type listeningConn struct {
	sdk.Connection
	tools *Tools
	ctx   context.Context // of the streams, which end with the connection
	stop  context.CancelFunc

	mu      sync.Mutex
	open    map[jsonrpc.ID]context.CancelFunc // the streams
	asked   map[jsonrpc.ID]bool               // the calls without an answer
	settled *sync.Cond                        // one of them has it, or the connection is closed
}

// Read implements sdk.Connection.
func (c *listeningConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		message, err := c.Connection.Read(ctx)
		if err != nil {
			c.answered()
			c.stop()
			return nil, err
		}
		if l, ok := ListenOf(message); ok {
			go c.serve(l)
		} else if !c.cancels(message) {
			if req, is := message.(*jsonrpc.Request); is && req.IsCall() {
				c.mu.Lock()
				c.asked[req.ID] = true
				c.mu.Unlock()
			}
			return message, nil
		}
	}
}

// answered waits until each call has its answer, was cancelled, or the connection is closed.
func (c *listeningConn) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.asked) > 0 && c.ctx.Err() == nil {
		c.settled.Wait()
	}
}

// Write implements sdk.Connection.
func (c *listeningConn) Write(ctx context.Context, message jsonrpc.Message) error {
	err := c.Connection.Write(ctx, message)
	if answer, is := message.(*jsonrpc.Response); is {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.asked, answer.ID)
		c.settled.Broadcast()
	}
	return err
}

// Close implements sdk.Connection.
func (c *listeningConn) Close() error {
	c.stop()
	c.mu.Lock()
	c.settled.Broadcast()
	c.mu.Unlock()
	return c.Connection.Close()
}

// cancels ends the stream that a message cancels, if there is one.
func (c *listeningConn) cancels(message jsonrpc.Message) bool {
	req, is := message.(*jsonrpc.Request)
	if !is || req.Method != cancelledMethod {
		return false
	}
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(req.Params, &p) != nil {
		return false
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.asked, id) // it may have no answer
	end, ours := c.open[id]
	if ours {
		end()
	}
	return ours
}

func (c *listeningConn) serve(l Listen) {
	ctx, end := context.WithCancel(c.ctx)
	defer end()
	write := func(m jsonrpc.Message) error { return c.Write(ctx, m) }
	if !c.enter(l.id, end) {
		_ = write(l.Refused(ErrTooManyListens)) // a client that is gone needs no answer
		return
	}
	err := func() (err error) {
		defer recovered(&err)
		return c.tools.Listen(ctx, nil, l, write)
	}()
	c.mu.Lock()
	delete(c.open, l.id)
	c.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		_ = write(l.Refused(err)) // as above
	}
}

func (c *listeningConn) enter(id jsonrpc.ID, end context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.open[id]; taken || len(c.open) >= MaxListens {
		return false
	}
	c.open[id] = end
	return true
}
