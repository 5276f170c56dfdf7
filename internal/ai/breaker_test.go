package ai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
)

// brokenServer fails as often as told, then answers.
func brokenServer(t *testing.T, failures int, fails http.HandlerFunc) *modelServer {
	t.Helper()
	replies := make([]http.HandlerFunc, 0, failures+1)
	for range failures {
		replies = append(replies, fails)
	}
	return serveModel(t, append(replies, says(written(7)))...)
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
	s := brokenServer(t, 16, down)
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
		s := brokenServer(t, 10, says("no list"))
		for range 5 {
			s.lists(t, t.Context(), "rules", 2)
		}
		s.lists(t, t.Context(), "small", 1)
	})
	t.Run("not a question that it does not take", func(t *testing.T) {
		t.Parallel()
		s := brokenServer(t, 10, refuses(http.StatusBadRequest))
		for range 5 {
			s.lists(t, t.Context(), "rules", 2)
		}
		s.lists(t, t.Context(), "small", 1)
	})
	t.Run("not a spent budget", func(t *testing.T) {
		t.Parallel()
		s := brokenServer(t, 0, nil)
		s.chat.budget.requests = 0
		for range 5 {
			s.lists(t, t.Context(), "rules", 0)
		}
		s.chat.budget.requests = 1
		s.lists(t, t.Context(), "small", 1)
	})
	t.Run("not a caller who has gone", func(t *testing.T) {
		t.Parallel()
		s := brokenServer(t, 0, nil)
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
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker()
		asks := func(end, want error) {
			t.Helper()
			if _, err := b.Execute(func() (struct{}, error) { return struct{}{}, end }); !errors.Is(err, want) {
				t.Errorf("it ends with %v, want %v", err, want)
			}
		}
		down := errors.New("down")
		fails := func() {
			for range restAfter {
				asks(down, down)
			}
		}
		fails()
		time.Sleep(restTime)
		asks(nil, gobreaker.ErrOpenState)
		time.Sleep(time.Nanosecond)
		_, err := b.Execute(func() (struct{}, error) {
			asks(nil, gobreaker.ErrTooManyRequests) // the probe is not back
			return struct{}{}, down
		})
		if !errors.Is(err, down) {
			t.Error(err)
		}
		asks(nil, gobreaker.ErrOpenState) // for a while again
		time.Sleep(restTime + 1)
		for _, nothing := range []error{errBudget, errNotTaken, context.Canceled} {
			asks(nothing, nothing) // nothing was learnt: the next one asks
		}
		asks(nil, nil)
		asks(nil, nil)
		fails()
		asks(nil, gobreaker.ErrOpenState)
		time.Sleep(restTime + 1)
		asks(errMalformed, errMalformed) // it is up
		asks(nil, nil)
	})
}
