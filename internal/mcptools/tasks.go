package mcptools

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/fence"
)

// tasksExtension is the official extension for work that outlives a request.
const tasksExtension = "io.modelcontextprotocol/tasks"

const (
	// extensionsSince is the first revision in which extensions are declared per request.
	extensionsSince = "2026-07-28"
	// pollInterval is how often a client may ask for a task, in milliseconds: a checker
	// marks an item every half minute or so.
	pollInterval = 5000
)

// The states of a task.
const (
	taskWorking       = "working"
	taskInputRequired = "input_required"
	taskCompleted     = "completed"
	taskCancelled     = "cancelled"
)

// task is a human test as the extension shows it. Its id is the job's, so the log keeps it.
type task struct {
	sdk.ResultBase
	ResultType     string          `json:"resultType"`
	TaskID         string          `json:"taskId"`
	Status         string          `json:"status"`
	StatusMessage  string          `json:"statusMessage,omitempty"`
	CreatedAt      string          `json:"createdAt"`
	LastUpdatedAt  string          `json:"lastUpdatedAt"`
	TTL            *int64          `json:"ttlMs"` // null: a job is kept
	PollIntervalMs int             `json:"pollIntervalMs,omitempty"`
	Result         json.RawMessage `json:"result,omitempty"`
	// InputRequests is the tester's question, by its id.
	InputRequests sdk.InputRequestMap `json:"inputRequests,omitempty"`
}

type taskParams struct {
	sdk.ParamsBase
	TaskID         string               `json:"taskId"`
	InputResponses sdk.InputResponseMap `json:"inputResponses,omitempty"` // of tasks/update
}

// acknowledged is the empty result of tasks/cancel and tasks/update.
type acknowledged struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
}

func (s *server) addTasks(to *sdk.Server) {
	get := func(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*task, error) {
		now, err := s.task(ctx, p.TaskID)
		if err != nil {
			return nil, noTask(err)
		}
		return now, nil
	}
	cancel := func(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*acknowledged, error) {
		if _, _, err := s.cancel(ctx, nil, jobIn{JobID: p.TaskID}); err != nil && !humanqa.Refused(err, http.StatusConflict) {
			return nil, noTask(err)
		}
		return &acknowledged{ResultType: "complete"}, nil // a test that has begun goes on, as the extension allows
	}
	update := func(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*acknowledged, error) {
		now, err := s.look(ctx, p.TaskID)
		if err != nil {
			return nil, noTask(err)
		}
		if now.Question != nil { // answers to anything else are ignored, as the extension says
			err = s.answerTask(ctx, p, now.Question.ID)
		}
		return &acknowledged{ResultType: "complete"}, err
	}
	for _, err := range []error{
		sdk.AddReceivingCustomMethod(to, "tasks/get", get),
		sdk.AddReceivingCustomMethod(to, "tasks/cancel", cancel),
		sdk.AddReceivingCustomMethod(to, "tasks/update", update),
	} {
		if err != nil {
			panic(err) // the names are constants
		}
	}
}

// answerTask gives the tester the answer that a person, or the client's model, filled in.
func (s *server) answerTask(ctx context.Context, p *taskParams, questionID string) error {
	filled, ok := p.InputResponses[questionID].(*sdk.ElicitResult)
	if !ok || filled.Action != "accept" {
		return nil // the question stays open until its time is over
	}
	in := answerIn{JobID: p.TaskID, QuestionID: questionID}
	in.Text, _ = filled.Content["answer"].(string)
	in.Secret, _ = filled.Content["secret"].(string)
	if _, _, err := s.answer(ctx, nil, in); err != nil && !humanqa.Refused(err, http.StatusConflict) {
		return noTask(err)
	}
	return nil
}

// ask is a question as a form.
func ask(q *question) sdk.InputRequestMap {
	property := func(about string) map[string]any { return map[string]any{"type": "string", "description": about} }
	return sdk.InputRequestMap{q.ID: &sdk.ElicitParams{
		Mode: "form", Message: "The tester is blocked and asks. " + fence.Rule + "\n" + q.Text,
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{
			"answer": property("the answer"), "secret": property("a code or password, which only the tester sees"),
		}},
	}}
}

// noTask is the answer about a task that is not there, or not the caller's.
func noTask(err error) error {
	if humanqa.Refused(err, http.StatusNotFound) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "there is no such task"}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// task reads a job as a task.
func (s *server) task(ctx context.Context, jobID string) (*task, error) {
	var status humanqa.HostedStatus
	if _, err := s.do(ctx, humanqa.Call{Method: http.MethodGet, Path: statusOf(jobID)}, &status); err != nil {
		return nil, err
	}
	var j humanqa.Job
	if _, err := s.do(ctx, humanqa.Call{Method: http.MethodGet, Path: "/v1/jobs/" + url.PathEscape(jobID)}, &j); err != nil {
		return nil, err
	}
	now, err := s.outcomeOf(ctx, jobID, status)
	if err != nil {
		return nil, err
	}
	t := &task{
		ResultType: "complete", TaskID: jobID, Status: taskWorking, StatusMessage: inWords(status),
		CreatedAt: j.CreatedAt, LastUpdatedAt: latest(j.CreatedAt, j.ClaimedAt, j.CompletedAt), PollIntervalMs: pollInterval,
	}
	switch {
	case !now.Done && now.Question != nil:
		t.Status, t.InputRequests = taskInputRequired, ask(now.Question)
		return t, nil
	case !now.Done:
		return t, nil
	case status.Status == humanqa.HostedStatusStatusCancelled:
		t.Status = taskCancelled
		return t, nil
	}
	t.Status = taskCompleted
	content, err := json.Marshal(now)
	if err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	result := map[string]any{
		"resultType": "complete", "structuredContent": json.RawMessage(content), "isError": now.Status != "completed",
		"content": []map[string]string{{"type": "text", "text": string(content)}},
	}
	t.Result, err = json.Marshal(result)
	return t, err
}

func latest(at string, others ...*string) string {
	for _, other := range others {
		if other != nil && *other > at { // one layout, one zone
			at = *other
		}
	}
	return at
}

// makeTasks is a middleware that answers a submission with a task, to a client that
// declared the extension for this request.
func (s *server) makeTasks(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		call, isCall := req.(*sdk.CallToolRequest)
		done, is := result.(*sdk.CallToolResult)
		if err != nil || !isCall || !is || call.Params.Name != toolTest && call.Params.Name != toolRetest || !takesTasks(call) {
			return result, err
		}
		id := submittedJob(done)
		if id == "" {
			return result, nil
		}
		if t, taskErr := s.task(ctx, id); taskErr == nil {
			t.ResultType = "task"
			return t, nil
		}
		return result, nil // the test stands: its handle is an answer, too
	}
}

// submittedJob is the job in the result of a submission; empty in a refusal or a question.
func submittedJob(result *sdk.CallToolResult) string {
	made, _ := result.StructuredContent.(json.RawMessage)
	var out submitted
	_ = json.Unmarshal(made, &out) // without content there is no job
	return out.JobID
}

func takesTasks(call *sdk.CallToolRequest) bool {
	declared := call.ClientCapabilities()
	if declared == nil || call.ProtocolVersion() < extensionsSince {
		return false
	}
	_, ok := declared.Extensions[tasksExtension]
	return ok
}
