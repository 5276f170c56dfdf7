package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/backoff"
)

const (
	// ListenMethod opens a stream of notifications.
	ListenMethod = "subscriptions/listen"
	// MaxListened bounds the tasks of one stream: each takes requests of the key's rate.
	MaxListened = 5
	// MaxListens bounds the streams of one key, as GET /v1/events does.
	MaxListens = 5
	// listenRetry is how long a stream waits after the API refused a look for the moment.
	listenRetry = 10 * time.Second

	acknowledgedMethod = "notifications/subscriptions/acknowledged"
	taskMethod         = "notifications/tasks"
	cancelledMethod    = "notifications/cancelled"
)

// Listen is a request for notifications of tasks. The library knows no tasks, so it would
// drop their ids.
type Listen struct {
	id       jsonrpc.ID
	taskIDs  []string
	declares bool // the client takes tasks
}

// ListenOf reads a request for notifications of tasks. Any other message is the library's.
func ListenOf(message jsonrpc.Message) (l Listen, ok bool) {
	req, is := message.(*jsonrpc.Request)
	if !is || req.Method != ListenMethod || !req.IsCall() {
		return l, false
	}
	var p struct {
		Meta struct {
			Version      string `json:"io.modelcontextprotocol/protocolVersion"`
			Capabilities struct {
				Extensions map[string]json.RawMessage `json:"extensions"`
			} `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
		Notifications struct {
			TaskIDs []string `json:"taskIds"`
		} `json:"notifications"`
	}
	if json.Unmarshal(req.Params, &p) != nil || p.Meta.Version < extensionsSince || len(p.Notifications.TaskIDs) == 0 {
		return l, false
	}
	_, declares := p.Meta.Capabilities.Extensions[tasksExtension]
	return Listen{id: req.ID, taskIDs: p.Notifications.TaskIDs, declares: declares}, true
}

// Refused is the answer that says why a stream does not begin, or ends.
func (l Listen) Refused(err error) *jsonrpc.Response {
	refusal, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		refusal = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return &jsonrpc.Response{ID: l.id, Error: refusal}
}

// ErrTooManyListens refuses one stream too many of a key.
var ErrTooManyListens = &jsonrpc.Error{
	Code: jsonrpc.CodeInternalError, Message: "the key has 5 streams of tasks open: close one of them, or poll with tasks/get",
}

// Listen tells a client of its tasks: first how they are, then each change, until all have
// ended or ctx does. Of more than MaxListened tasks it takes the first, and says so in its
// acknowledgement. It calls send from one goroutine. header is that of the request, with the caller's key.
//
// A client that reads too slowly blocks send, and holds its own stream only. It then gets
// the newest state: states between are dropped, as in a poll.
//
// An error before the first message is a refusal; see Listen.Refused.
func (t *Tools) Listen(ctx context.Context, header http.Header, l Listen, send func(jsonrpc.Message) error) error {
	if !l.declares {
		return errNoTasks
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, headerKey{}, header))
	defer cancel()
	agreed := []*task{}
	ids := slices.Clone(l.taskIDs)
	for i, id := range ids {
		if len(agreed) == MaxListened || slices.Contains(ids[:i], id) {
			continue
		}
		now, err := t.calls.task(ctx, id)
		if humanqa.Refused(err, http.StatusNotFound) {
			continue // the acknowledgement leaves it out
		}
		if err != nil {
			return noTask(err)
		}
		agreed = append(agreed, now)
	}
	changed, ended := make(chan *task), make(chan error, len(agreed))
	var watching sync.WaitGroup
	defer func() { cancel(); watching.Wait() }()
	if err := l.begin(agreed, send); err != nil {
		return err
	}
	for _, now := range agreed {
		watching.Go(func() { ended <- t.calls.watch(ctx, now, changed) })
	}
	for open := len(agreed); open > 0; {
		select {
		case now := <-changed:
			if err := l.notify(taskMethod, now, send); err != nil {
				return err
			}
		case err := <-ended:
			if err != nil {
				return err
			}
			open--
		}
	}
	result, err := json.Marshal(map[string]any{"resultType": "complete", "_meta": l.meta()})
	if err != nil {
		return err
	}
	return send(&jsonrpc.Response{ID: l.id, Result: result})
}

// begin acknowledges the tasks and says how they are.
func (l Listen) begin(agreed []*task, send func(jsonrpc.Message) error) error {
	ids := make([]string, len(agreed))
	for i, now := range agreed {
		ids[i] = now.TaskID
	}
	acknowledged := map[string]any{"notifications": map[string]any{"taskIds": ids}, "_meta": l.meta()}
	if err := l.notify(acknowledgedMethod, acknowledged, send); err != nil {
		return err
	}
	for _, now := range agreed {
		if err := l.notify(taskMethod, now, send); err != nil {
			return err
		}
	}
	return nil
}

// meta names the stream in each of its messages: a client may have several.
func (l Listen) meta() sdk.Meta { return sdk.Meta{sdk.MetaKeySubscriptionID: l.id.Raw()} }

func (l Listen) notify(method string, params any, send func(jsonrpc.Message) error) error {
	if now, is := params.(*task); is {
		told := *now
		told.ResultType = "" // it is no result here
		told.Meta = l.meta()
		params = &told
	}
	encoded, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return send(&jsonrpc.Request{Method: method, Params: encoded})
}

// watch gives each state of a task that follows the one given, and ends with the task.
// The pauses keep a stream from taking the key's whole rate.
func (s *server) watch(ctx context.Context, last *task, changed chan<- *task) (err error) {
	defer recovered(&err)
	var status seen
	for !last.ended() {
		pause := betweenLooks
		next, after, err := s.next(ctx, last.TaskID, status)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !humanqa.Passing(err):
			return noTask(err)
		case err != nil:
			pause = listenRetry
		default:
			if next.Status != last.Status || next.StatusMessage != last.StatusMessage || next.asks() != last.asks() {
				select {
				case changed <- next:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			last, status = next, after
		}
		if !last.ended() {
			_ = backoff.Wait(ctx, pause) // its end shows at the next look
		}
	}
	return nil
}

// next waits for a change of a task.
func (s *server) next(ctx context.Context, jobID string, status seen) (*task, seen, error) {
	after, err := s.statusAfter(ctx, jobID, status, maxStatusWait)
	if err != nil {
		return nil, status, err
	}
	now, err := s.taskOf(ctx, jobID, after.HostedStatus)
	return now, after, err
}

func (t *task) ended() bool { return t.Status == taskCompleted || t.Status == taskCancelled }

// asks is the id of the tester's question, if any.
func (t *task) asks() string {
	for id := range t.InputRequests {
		return id
	}
	return ""
}

// errNoTasks refuses a client that did not declare the extension.
var errNoTasks = func() error {
	needed := &sdk.ClientCapabilities{}
	needed.AddExtension(tasksExtension, nil)
	data, err := json.Marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: needed})
	if err != nil {
		panic(err) // it is constant
	}
	return &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "Missing required client capability", Data: data}
}()
