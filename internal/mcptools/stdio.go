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

// Run lets a server serve one client, which sends a message a line, until its lines or ctx end. A line
// that is no message is answered with an error, and the next one is read.
func Run(ctx context.Context, server *sdk.Server, in io.Reader, out io.Writer) error {
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
	return server.Run(ctx, settling{&sdk.IOTransport{Reader: messages, Writer: answers}})
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

// settling is a transport whose connection ends only when what was asked before has its
// answer: the library drops the calls under way.
type settling struct{ sdk.Transport }

// Connect implements sdk.Transport.
func (t settling) Connect(ctx context.Context) (sdk.Connection, error) {
	conn, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &settlingConn{Connection: conn, asked: map[jsonrpc.ID]bool{}}
	c.settled = sync.NewCond(&c.mu)
	return c, nil
}

type settlingConn struct {
	sdk.Connection

	mu      sync.Mutex
	asked   map[jsonrpc.ID]bool // the calls without an answer
	closed  bool
	settled *sync.Cond // one of them has it, or the connection is closed
}

// Read implements sdk.Connection.
func (c *settlingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		for len(c.asked) > 0 && !c.closed {
			c.settled.Wait()
		}
		return nil, err
	}
	if req, is := message.(*jsonrpc.Request); is && req.IsCall() {
		c.asked[req.ID] = true
	} else if is && req.Method == cancelledMethod {
		delete(c.asked, cancelledCall(req)) // it may have no answer
	}
	return message, nil
}

// Write implements sdk.Connection.
func (c *settlingConn) Write(ctx context.Context, message jsonrpc.Message) error {
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
func (c *settlingConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.settled.Broadcast()
	c.mu.Unlock()
	return c.Connection.Close()
}

// cancelledMethod takes a call back.
const cancelledMethod = "notifications/cancelled"

// cancelledCall is the id of the call that a message takes back; the zero id is no call's.
func cancelledCall(req *jsonrpc.Request) jsonrpc.ID {
	var p struct {
		RequestID any `json:"requestId"`
	}
	_ = json.Unmarshal(req.Params, &p)   // the library refuses it
	id, _ := jsonrpc.MakeID(p.RequestID) // as above
	return id
}
