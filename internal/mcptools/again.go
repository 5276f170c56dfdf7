package mcptools

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/integrations/clients/go/humanqa"
)

type failuresIn struct {
	ProjectID string `json:"projectId" jsonschema:"of the project"`
	Limit     *int   `json:"limit,omitempty" jsonschema:"at most so many, 1 to 100; 20 without it"`
}

type failures struct {
	Failures []failure `json:"failures"`
}

type failure struct {
	ID          string `json:"id"`
	JobID       string `json:"jobId"`
	Severity    string `json:"severity"`
	FailedTests int    `json:"failedTests" jsonschema:"how many tests in a row it has failed"`
	Item        string `json:"item" jsonschema:"fenced"`
}

func (s *server) failures(ctx context.Context, _ *sdk.CallToolRequest, in failuresIn) (*sdk.CallToolResult, failures, error) {
	var list humanqa.OpenFailures
	path := "/v1/projects/" + url.PathEscape(in.ProjectID) + "/open-failures"
	if in.Limit != nil {
		path += fmt.Sprintf("?limit=%d", *in.Limit)
	}
	out := failures{Failures: []failure{}}
	if _, err := s.do(ctx, humanqa.Call{Method: http.MethodGet, Path: path}, &list); err != nil {
		return nil, out, err
	}
	for _, f := range list.OpenFailures {
		out.Failures = append(out.Failures, failure{
			ID: f.ID, JobID: f.JobID, Severity: string(f.Severity), FailedTests: f.FailedTests, Item: byChecker(f.Description),
		})
	}
	return nil, out, nil
}

type prepareIn struct {
	ProjectID         string   `json:"projectId,omitempty" jsonschema:"of the project; or name a test of it"`
	JobID             string   `json:"jobId,omitempty" jsonschema:"of a test of the project"`
	FixedBugIDs       []string `json:"fixedBugIds,omitempty" jsonschema:"ids of items that failed in the project's last test"`
	FixedDescriptions []string `json:"fixedDescriptions,omitempty" jsonschema:"other fixes, in words"`
}

type prepared struct {
	RegressionItems int    `json:"regressionItems"`
	Message         string `json:"message"`
	Next            string `json:"next" jsonschema:"what to call next"`
}

func (s *server) prepareNext(ctx context.Context, _ *sdk.CallToolRequest, in prepareIn) (*sdk.CallToolResult, prepared, error) {
	var out prepared
	if in.ProjectID == "" && in.JobID != "" {
		var of humanqa.Job
		if _, err := s.do(ctx, humanqa.Call{Method: http.MethodGet, Path: "/v1/jobs/" + url.PathEscape(in.JobID)}, &of); err != nil {
			return nil, out, err
		}
		if of.ProjectID == nil {
			return nil, out, fmt.Errorf("test %s belongs to no project: %s repeats its whole checklist without this step", in.JobID, toolRetest)
		}
		in.ProjectID, in.JobID = *of.ProjectID, ""
	}
	_, err := s.do(ctx, humanqa.Call{Method: http.MethodPost, Path: "/v1/hosted/prepare-next", Body: in}, &out)
	out.Next = fmt.Sprintf("deploy, then call %s", toolRetest)
	return nil, out, err
}

type retestIn struct {
	JobID          string   `json:"jobId" jsonschema:"of the test to repeat"`
	MaxCredits     *float64 `json:"maxCredits,omitempty" jsonschema:"buy nothing dearer than this; 0 buys nothing"`
	IdempotencyKey string   `json:"idempotencyKey" jsonschema:"your name for this one retest; a repeat under it is paid once"`
}

func (s *server) retest(ctx context.Context, req *sdk.CallToolRequest, in retestIn) (*sdk.CallToolResult, submitted, error) {
	if in.IdempotencyKey == "" {
		return nil, submitted{}, errNoKey
	}
	ask, err := s.confirm(ctx, req, in.MaxCredits, func() (float64, error) { return s.priceAgain(ctx, in.JobID) })
	if ask != nil || err != nil {
		return ask, submitted{}, err
	}
	return s.submit(ctx, "/v1/jobs/"+url.PathEscape(in.JobID)+"/retest", in.IdempotencyKey, nil)
}

// priceAgain is the price of a retest: the same as of the same test submitted anew.
func (s *server) priceAgain(ctx context.Context, jobID string) (float64, error) {
	var j humanqa.Job
	if _, err := s.do(ctx, humanqa.Call{Method: http.MethodGet, Path: "/v1/jobs/" + url.PathEscape(jobID)}, &j); err != nil {
		return 0, err
	}
	price, err := s.priceOf(ctx, target{URL: j.URL, Feature: j.Title, JobType: j.JobType, Urgent: j.Priority == humanqa.PriorityUrgent})
	return price.CreditsRequired, err
}

type cancelled struct {
	JobID           string  `json:"jobId"`
	Status          string  `json:"status"`
	CreditsRefunded float64 `json:"creditsRefunded"`
}

func (s *server) cancel(ctx context.Context, _ *sdk.CallToolRequest, in jobIn) (*sdk.CallToolResult, cancelled, error) {
	var out cancelled
	path := "/v1/jobs/" + url.PathEscape(in.JobID) + "/cancel"
	_, err := s.do(ctx, humanqa.Call{Method: http.MethodPost, Path: path, Body: struct{}{}}, &out)
	return nil, out, err
}
