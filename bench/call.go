package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// caller sends the requests that no client repeats.
var caller = &http.Client{
	Timeout:   callTime,
	Transport: &http.Transport{MaxIdleConnsPerHost: 256},
}

// call sends a request and reads its answer into out, which may be nil. Any
// other status than the wanted one is an error.
func (s *service) call(ctx context.Context, want int, method, path, key string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	answer, err := caller.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode != want:
		return fmt.Errorf("%s %s: %s: %.300s", method, path, answer.Status, raw)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// bulkSize is the most jobs that one request may carry.
const bulkSize = 20

// submitBulk submits jobs to one account, twenty a request, and gives their
// ids.
func (s *service) submitBulk(ctx context.Context, key, projectID string, jobs int) ([]string, error) {
	one := map[string]any{
		"url": "https://shop.example.com/checkout", "title": "Checkout", "description": "Pay by invoice.",
		"jobType": "Payment Flow", "slaMinutes": 60,
		"checklistItems": []any{map[string]any{"description": "Invoice is offered", "severity": "major"}},
	}
	if projectID != "" {
		one["projectId"] = projectID
	}
	return s.submitEach(ctx, key, jobs, func(int) any { return one })
}

// submitEach submits so many jobs, each with a body of its own, and gives their ids.
func (s *service) submitEach(ctx context.Context, key string, jobs int, body func(i int) any) ([]string, error) {
	ids := make([]string, jobs)
	err := inTurns(ctx, (jobs+bulkSize-1)/bulkSize, func(ctx context.Context, i int) error {
		from := i * bulkSize
		batch := make([]any, min(bulkSize, jobs-from))
		for n := range batch {
			batch[n] = body(from + n)
		}
		var out struct{ JobIDs []string }
		if err := s.call(ctx, http.StatusCreated, http.MethodPost, "/v1/jobs/bulk", key, map[string]any{"jobs": batch}, &out); err != nil {
			return err
		}
		copy(ids[from:], out.JobIDs)
		return nil
	})
	s.jobs += jobs
	return ids, err
}
