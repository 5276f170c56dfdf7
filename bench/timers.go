package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	dueTimers  = 10_000
	timersTime = 2 * time.Minute
)

// timers is part (f): so many jobs whose SLA ends at the same moment. A sandbox
// moves its clock past it, and the account's event feed tells when each was
// handled, and how often.
func timers(ctx context.Context, b *bench) (section, error) {
	s, err := b.openService(ctx)
	if err != nil {
		return section{}, err
	}
	key, err := s.openAccount(ctx, "due at once", "--sandbox")
	if err != nil {
		return section{}, err
	}
	if _, err := s.submitBulk(ctx, key, "", dueTimers); err != nil {
		return section{}, s.ifDead(err)
	}
	began := time.Now()
	advance := map[string]any{"seconds": 3601}
	if err := s.call(ctx, http.StatusOK, http.MethodPost, "/v1/sandbox/clock/advance", key, advance, nil); err != nil {
		return section{}, err
	}
	misses, took, err := s.watchMisses(ctx, key, began)
	if err != nil {
		return section{}, s.ifDead(err)
	}
	twice := 0
	for _, n := range misses {
		if n > 1 {
			twice++
		}
	}
	return section{
		Title: "timers that are due at once",
		Notes: []string{
			fmt.Sprintf("%d jobs miss their SLA in one moment; each is put back into the queue by a command on the log", dueTimers),
			"timed from the request that moves the clock to the last job's event in the account's feed",
		},
		Figures: []figure{
			{"jobs handled", float64(len(misses)), "jobs"},
			{"until the last", took.Seconds(), "s"},
		},
		Goals: []goal{
			atLeast("timers handled a second", float64(len(misses))/took.Seconds(), 700),
			below("handled twice", float64(twice), 1, "jobs"),
		},
	}, nil
}

// watchMisses reads the feed until every job has missed its SLA, and once more
// a moment later: a second firing would come late.
func (s *service) watchMisses(ctx context.Context, key string, began time.Time) (misses map[string]int, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, timersTime)
	defer cancel()
	misses = make(map[string]int, dueTimers)
	after, settled := "", false
	for {
		var page struct {
			Events []struct{ JobID string }
			Next   string
		}
		query := url.Values{"types": {"job.failed_sla"}, "limit": {"100"}, "after": {after}}
		if err := s.call(ctx, http.StatusOK, http.MethodGet, "/v1/events?"+query.Encode(), key, nil, &page); err != nil {
			return nil, 0, err
		}
		for _, e := range page.Events {
			misses[e.JobID]++
		}
		if page.Next != "" {
			after = page.Next
		}
		switch {
		case len(page.Events) > 0:
			if len(misses) == dueTimers && took == 0 {
				took = time.Since(began)
			}
			continue
		case settled:
			return misses, took, nil
		}
		wait := 20 * time.Millisecond
		if took > 0 {
			wait, settled = time.Second, true
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, 0, fmt.Errorf("%d of %d jobs were handled: %w", len(misses), dueTimers, ctx.Err())
		}
	}
}
