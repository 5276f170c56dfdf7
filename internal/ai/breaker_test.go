package ai

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// brokenServer fails as often as told, then answers. Its clock is the test's.
func brokenServer(t *testing.T, failures int, fails http.HandlerFunc) (s *modelServer, pass func(time.Duration)) {
	t.Helper()
	replies := make([]http.HandlerFunc, 0, failures+1)
	for range failures {
		replies = append(replies, fails)
	}
	s = serveModel(t, append(replies, says(written(7)))...)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s.chat.breaker.now = func() time.Time { return now }
	return s, func(d time.Duration) { now = now.Add(d) }
}

// lists asks for a list of an account's own, so that no budget gets in the way.
func (s *modelServer) lists(t *testing.T, ctx context.Context, by string, requests int) {
	t.Helper()
	brief := listBrief
	brief.AccountID = fmt.Sprint("acc-of-", len(s.seen()))
	before := len(s.seen())
	_, got, err := s.Checklist(ctx, brief)
	if err != nil || got != by {
		t.Errorf("written by %q, %v, want %q", got, err, by)
	}
	if n := len(s.seen()) - before; n != requests {
		t.Errorf("%d requests, want %d", n, requests)
	}
}

func TestAServerThatKeepsFailingIsLeftAloneForAWhile(t *testing.T) {
	t.Parallel()
	down := refuses(http.StatusServiceUnavailable)
	ctx := t.Context()
	s, pass := brokenServer(t, 16, down)
	for range 3 {
		s.lists(t, ctx, "rules", 4)
	}
	s.lists(t, ctx, "rules", 0)
	if said := s.log.String(); !strings.Contains(said, errResting.Error()) {
		t.Errorf("the log does not say why: %s", said)
	}
	if report, err := s.Analyse(ctx, shopReport()); err != nil || report.GeneratedBy != "rules" {
		t.Errorf("an analysis by %q, %v", report.GeneratedBy, err)
	}
	pass(restTime - time.Millisecond)
	s.lists(t, ctx, "rules", 0)
	pass(time.Millisecond)
	s.lists(t, ctx, "rules", 4) // one question asks how it is
	s.lists(t, ctx, "rules", 0)
	pass(restTime)
	s.lists(t, ctx, "small", 1)
	s.lists(t, ctx, "small", 1)
}

func TestFailuresCountInARow(t *testing.T) {
	t.Parallel()
	down, answers := refuses(http.StatusUnauthorized), says(written(7))
	s := serveModel(t, down, down, answers, down, down, answers, down, down, down, answers)
	for _, by := range []string{"rules", "rules", "small", "rules", "rules", "small", "rules", "rules", "rules"} {
		s.lists(t, t.Context(), by, 1)
	}
	s.lists(t, t.Context(), "rules", 0)
}

// One account's questions, however odd, do not take the model from the others.
func TestOnlyTheServersFailuresCount(t *testing.T) {
	t.Parallel()
	t.Run("not a malformed answer", func(t *testing.T) {
		t.Parallel()
		s, _ := brokenServer(t, 10, says("no list"))
		for range 5 {
			s.lists(t, t.Context(), "rules", 2)
		}
		s.lists(t, t.Context(), "small", 1)
	})
	t.Run("not a question that it does not take", func(t *testing.T) {
		t.Parallel()
		s, _ := brokenServer(t, 10, refuses(http.StatusBadRequest))
		for range 5 {
			s.lists(t, t.Context(), "rules", 2)
		}
		s.lists(t, t.Context(), "small", 1)
	})
	t.Run("not a spent budget", func(t *testing.T) {
		t.Parallel()
		s, _ := brokenServer(t, 0, nil)
		s.chat.budget.requests = 0
		for range 5 {
			s.lists(t, t.Context(), "rules", 0)
		}
		s.chat.budget.requests = 1
		s.lists(t, t.Context(), "small", 1)
	})
	t.Run("not a caller who has gone", func(t *testing.T) {
		t.Parallel()
		s, _ := brokenServer(t, 0, nil)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 5 {
			if _, _, err := s.Checklist(gone, listBrief); err == nil {
				t.Error("somebody got a list")
			}
		}
		s.lists(t, t.Context(), "small", 1)
	})
}

func TestOneQuestionAtATimeAsksHowTheServerIs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	b := &breaker{now: func() time.Time { return now }}
	for range restAfter {
		b.leave(false, down)
	}
	now = now.Add(restTime)
	enters := func(wantProbe, wantMay bool) {
		t.Helper()
		if probe, may := b.enter(); probe != wantProbe || may != wantMay {
			t.Errorf("enter is %v, %v, want %v, %v", probe, may, wantProbe, wantMay)
		}
	}
	enters(true, true)
	enters(false, false)
	b.leave(false, unknown) // one from before does not end the probe
	enters(false, false)
	b.leave(true, unknown) // nothing was learnt: the next one asks
	enters(true, true)
	b.leave(true, up)
	enters(false, true)
	enters(false, true)
}
