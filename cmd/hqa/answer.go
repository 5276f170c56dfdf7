package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/fence"
)

type answerCmd struct {
	Text   string `arg:"" optional:"" help:"The answer; without one the open question is shown."`
	Job    string `placeholder:"ID" help:"The job; without it the one of this directory's last run that has a question."`
	Secret bool   `help:"Read a secret from standard input, such as a code. Only the checker of this claim sees it."`
}

// secretLimit is far beyond the service's limit.
const secretLimit = 64 << 10

// Run answers the one question that a job can have.
func (c *answerCmd) Run(ctx context.Context, a *app) error {
	var named []string
	if c.Job != "" {
		named = []string{c.Job}
	}
	client, _, ids, err := a.these(named)
	if err != nil {
		return err
	}
	job, q, err := openQuestion(ctx, client, ids)
	if err != nil {
		return err
	}
	if c.Text == "" && !c.Secret {
		if a.json {
			return a.line(map[string]any{"jobId": job, "question": q})
		}
		_, err := fmt.Fprintf(a.out, "%s\n\n%s\n\nIt waits until %s. Answer with: hqa answer --job %s TEXT\n", fence.Rule,
			fence.Text("checker", q.Text), oneLine(q.Until), job)
		return err
	}
	body := map[string]string{"text": c.Text}
	if c.Secret {
		raw, err := io.ReadAll(io.LimitReader(a.in, secretLimit))
		if err != nil {
			return err
		}
		if body["secret"] = strings.TrimRight(string(raw), "\r\n"); body["secret"] == "" {
			return usage("standard input holds no secret")
		}
	}
	var told humanqa.AnsweredQuestion
	path := "/v1/jobs/" + url.PathEscape(job) + "/questions/" + url.PathEscape(q.ID) + "/answer"
	// A question has one answer, so its id makes the key.
	call := humanqa.Call{Method: http.MethodPost, Path: path, Body: body, Key: "hqa-answer-" + q.ID}
	if _, err := client.Do(ctx, call, &told); err != nil {
		return err
	}
	return a.print(map[string]string{"jobId": job, "questionId": q.ID, "status": string(told.Status)}, "answered: the test goes on")
}

// openQuestion finds the question among the jobs.
func openQuestion(ctx context.Context, client *humanqa.Client, ids []string) (job string, q humanqa.OpenQuestion, err error) {
	for _, id := range ids {
		j, err := readJob(ctx, client, id)
		if err != nil {
			return "", q, err
		}
		if j.OpenQuestion != nil {
			return id, *j.OpenQuestion, nil
		}
	}
	return "", q, usage("no question waits for an answer")
}
