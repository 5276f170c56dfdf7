package command_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/must"
)

// stage is a bundle whose clock, AI and past the test decides.
type stage struct {
	bundle
	ai      *scriptedAI
	ahead   *atomic.Int64 // of the wall clock
	service func() *command.Service
}

func setStage(t *testing.T, amount domain.Credits) stage {
	t.Helper()
	s := stage{bundle: setup(t, amount), ai: &scriptedAI{instant: true}, ahead: new(atomic.Int64)}
	s.service = func() *command.Service {
		return command.New(command.Deps{
			Log: s.log, Sealer: openSealer{}, AI: s.ai, Reads: s.ai, ClaimsPerChecker: 1,
			Now: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) },
		})
	}
	s.Service = s.service()
	t.Cleanup(func() { s.Drain() })
	return s
}

// pass moves the clock on.
func (s stage) pass(d time.Duration) { s.ahead.Add(int64(d)) }

// claimed is a job in a new checker's hands.
func (s stage) claimed(t *testing.T, id string) command.Claim {
	t.Helper()
	checker := s.newChecker(t)
	c, err := s.ClaimJob(t.Context(), s.checkerCause(checker), checker, id)
	must.NoError(t, err)
	return command.Claim{CheckerID: checker, JobID: id, Token: c.Token}
}

func (s stage) completed(t *testing.T, id string) {
	t.Helper()
	claim := s.claimed(t, id)
	s.checkAll(t, claim)
	_, _, err := s.CompleteJob(t.Context(), s.checkerCause(claim.CheckerID), claim, command.CompleteJob{Summary: "done"})
	must.NoError(t, err)
}

func (s stage) checkAll(t *testing.T, claim command.Claim) {
	t.Helper()
	for _, i := range s.job(claim.JobID).Items {
		_, _, err := s.CheckItem(t.Context(), s.checkerCause(claim.CheckerID), claim, command.CheckItem{ItemID: i.ID, Status: job.ItemPass})
		must.NoError(t, err)
	}
}

// job folds a job as the log has it.
func (b bundle) job(id string) (st job.State) {
	for _, e := range b.log.Stream(domain.JobStream(id)) {
		st = job.Evolve(st, e.Event)
	}
	return st
}

// nothing expects that a call writes nothing.
func (b bundle) nothing(t *testing.T, call func()) {
	t.Helper()
	before := len(b.log.All())
	call()
	if more := b.log.All()[before:]; len(more) > 0 {
		t.Errorf("%d events were written, the first a %s", len(more), more[0].Type)
	}
}

// scriptedAI answers as it is told and remembers what it was asked.
type scriptedAI struct {
	commandtest.AI
	commandtest.NoReads

	mu       sync.Mutex
	instant  bool
	err      error
	items    []command.NewItem
	review   command.Review
	failures []command.Regression
	during   func() // while it thinks
	briefs   []command.ChecklistBrief
	analyses []command.AnalysisBrief
}

func (a *scriptedAI) set(change func(*scriptedAI)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func (a *scriptedAI) Instant() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.instant
}

func (a *scriptedAI) Checklist(ctx context.Context, brief command.ChecklistBrief) ([]command.NewItem, string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.briefs = append(a.briefs, brief)
	if a.during != nil {
		a.during()
	}
	if a.err != nil || a.items != nil {
		return a.items, "model", a.err
	}
	return a.AI.Checklist(ctx, brief)
}

func (a *scriptedAI) Analyse(ctx context.Context, brief command.AnalysisBrief) (job.AIReport, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.analyses = append(a.analyses, brief)
	if a.err != nil {
		return job.AIReport{}, a.err
	}
	return a.AI.Analyse(ctx, brief)
}

func (a *scriptedAI) Review(ctx context.Context, url string) (command.Review, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil || a.review.Items != nil {
		return a.review, a.err
	}
	return a.AI.Review(ctx, url)
}

func (a *scriptedAI) OpenFailures(context.Context, string, string, int) ([]command.Regression, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.failures), nil
}

var errNoModel = errors.New("no model")
