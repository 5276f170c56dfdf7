package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"humanqa/internal/backoff"
)

const (
	listedJobs   = 100_000
	historyTests = 10_000
	// readRate is how often each of the reads is asked for while backgroundRate
	// requests a second of other accounts run.
	readRate       = 50
	backgroundRate = 200
)

// reads is part (e): the first page of a long list and the history of an old
// project, timed under other accounts' load.
func reads(ctx context.Context, b *bench) (section, error) {
	s, err := b.openService(ctx)
	if err != nil {
		return section{}, err
	}
	list, err := s.openAccount(ctx, "long list")
	if err != nil {
		return section{}, err
	}
	// A sandbox plays its tests itself; its rows are like all others.
	past, err := s.openAccount(ctx, "long past", "--sandbox")
	if err != nil {
		return section{}, err
	}
	if _, err := s.submitBulk(ctx, list, "", listedJobs); err != nil {
		return section{}, s.ifDead(err)
	}
	project, err := s.playTests(ctx, past, historyTests)
	if err != nil {
		return section{}, s.ifDead(err)
	}

	took := max(10*time.Second, 3*b.round)
	background, stop := context.WithCancel(ctx)
	loaded := make(chan error, 1)
	go func() { loaded <- s.others(background, 5*took) }()
	// A warm-up, as long as a measurement: Postgres is still writing back and
	// vacuuming what was just loaded.
	_, err = s.timed(ctx, took, list, "/v1/jobs?limit=100")
	if err != nil {
		stop()
		return section{}, s.ifDead(errors.Join(err, <-loaded))
	}
	page, err := s.timed(ctx, took, list, "/v1/jobs?limit=100")
	history, historyErr := s.timed(ctx, took, past, "/v1/projects/"+project+"/history")
	stop()
	if err := errors.Join(err, historyErr, <-loaded); err != nil {
		return section{}, s.ifDead(err)
	}
	return section{
		Title: "reads of large accounts, under load",
		Notes: []string{
			fmt.Sprintf(
				"an account with %d jobs; a project with %d completed tests; each read %d times a second for %s, timed from when it was due",
				listedJobs, historyTests, readRate, took),
			"once every test has its AI report: the analyst's work is no part of it",
			fmt.Sprintf("meanwhile %d requests a second of %d other accounts: submissions, lists, single jobs", backgroundRate,
				len(s.keys)),
		},
		Measurements: []measurement{
			summarise("GET /v1/jobs?limit=100", "service", []sample{page}),
			summarise("GET /v1/projects/:id/history", "service", []sample{history}),
		},
		Goals: []goal{
			below("list of 100 in 100,000 jobs, p99", millis(page.quantile(0.99)), 20, "ms"),
			below("history of 10,000 tests, p99", millis(history.quantile(0.99)), 20, "ms"),
		},
	}, nil
}

// playTests makes a project with so many completed tests, every third of them
// failed.
func (s *service) playTests(ctx context.Context, key string, tests int) (projectID string, err error) {
	var project struct{ ProjectID string }
	if err := s.call(ctx, http.StatusCreated, http.MethodPost, "/v1/projects", key, map[string]any{"name": "old"}, &project); err != nil {
		return "", err
	}
	jobs, err := s.submitBulk(ctx, key, project.ProjectID, tests)
	if err != nil {
		return "", err
	}
	err = inTurns(ctx, len(jobs), func(ctx context.Context, i int) error {
		verdict := "pass"
		if i%3 == 0 {
			verdict = "fail"
		}
		results := []any{map[string]any{"item": "item-1", "status": verdict}}
		return s.call(ctx, http.StatusOK, http.MethodPost, "/v1/sandbox/jobs/"+jobs[i]+"/play", key, map[string]any{"results": results},
			nil)
	})
	if err != nil {
		return "", err
	}
	return project.ProjectID, s.analysed(ctx, key, project.ProjectID, tests)
}

// analysed waits until every test has its AI report, so that the later part measures
// reads and not the analyst.
func (s *service) analysed(ctx context.Context, key, projectID string, tests int) error {
	for {
		var history struct{ ScoredTests int }
		if err := s.call(ctx, http.StatusOK, http.MethodGet, "/v1/projects/"+projectID+"/history", key, nil, &history); err != nil {
			return err
		}
		if history.ScoredTests == tests {
			return nil
		}
		if backoff.Wait(ctx, 250*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// timed asks for one path at readRate.
func (s *service) timed(ctx context.Context, took time.Duration, key, path string) (sample, error) {
	return timedLoop(ctx, readRate, took, func(ctx context.Context, _ int) error {
		return s.call(ctx, http.StatusOK, http.MethodGet, path, key, nil, nil)
	})
}

// others is the load of other accounts, until the context ends.
func (s *service) others(ctx context.Context, atMost time.Duration) error {
	err := openLoop(ctx, backgroundRate, atMost, func(ctx context.Context, i int, _ time.Time) error {
		key := s.keys[i%len(s.keys)]
		switch i % 4 {
		case 0:
			var submitted struct{ JobID string }
			err := s.call(ctx, http.StatusCreated, http.MethodPost, "/v1/jobs", key, json.RawMessage(submission), &submitted)
			if err != nil {
				return err
			}
			return s.call(ctx, http.StatusOK, http.MethodGet, "/v1/jobs/"+submitted.JobID, key, nil, nil)
		case 1:
			return s.call(ctx, http.StatusOK, http.MethodGet, "/v1/projects", key, nil, nil)
		case 2:
			return s.call(ctx, http.StatusOK, http.MethodGet, "/v1/credits", key, nil, nil)
		}
		return s.call(ctx, http.StatusOK, http.MethodGet, "/v1/jobs", key, nil, nil)
	})
	select {
	case <-ctx.Done():
		return nil // told to stop
	default:
		return err
	}
}
