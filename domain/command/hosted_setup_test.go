package command_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/must"
)

// toldReads answers what a test says the read models know.
type toldReads struct {
	commandtest.NoReads
	mu       sync.Mutex
	byHost   map[string]string
	failures map[string][]command.Regression
	tested   map[string]bool
	known    map[string]string // the project's items by key
	err      error
}

func (p *toldReads) ProjectForHost(_ context.Context, _, host string) (string, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, found := p.byHost[host]
	return id, found, p.err
}

func (p *toldReads) OpenFailures(_ context.Context, _, projectID string, limit int) ([]command.Regression, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.failures[projectID]
	return all[:min(limit, len(all))], p.err
}

func (p *toldReads) Tested(_ context.Context, _, projectID string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tested[projectID], p.err
}

func (p *toldReads) KnownKeys(_ context.Context, _, _ string, keys []string) (map[string]string, error) {
	found := maps.Clone(p.known)
	maps.DeleteFunc(found, func(key, _ string) bool { return !slices.Contains(keys, key) })
	return found, p.err
}

func (p *toldReads) Ended(_ context.Context, _ string, jobIDs []string) ([]string, error) {
	return jobIDs, nil
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// hostedBundle is a service whose read models a test tells.
type hostedBundle struct {
	bundle
	reads *toldReads
	clock *clock
}

func setupHosted(t *testing.T, amount domain.Credits) hostedBundle {
	t.Helper()
	b := hostedBundle{
		bundle: setup(t, amount),
		reads:  &toldReads{byHost: map[string]string{}, failures: map[string][]command.Regression{}, tested: map[string]bool{}},
		clock:  &clock{at: time.Now()},
	}
	b.Service = b.process()
	t.Cleanup(b.Drain)
	return b
}

// process is another process on the same log.
func (b hostedBundle) process() *command.Service {
	return command.New(command.Deps{
		Log: b.log, Sealer: openSealer{}, AI: commandtest.AI{}, Reads: b.reads, Now: b.clock.now, ClaimsPerChecker: 1,
	})
}

func aTest() command.HostedTest {
	return command.HostedTest{Submission: job.Submission{URL: "https://shop.example/", Source: "hosted"}, Host: "shop.example"}
}

func (b hostedBundle) test(t *testing.T, in command.HostedTest) command.HostedJob {
	t.Helper()
	j, err := b.TestHosted(t.Context(), b.cause(), in)
	must.NoError(t, err)
	return j
}

func (b hostedBundle) prepare(t *testing.T, projectID string, fixes ...string) {
	t.Helper()
	var in []command.PreparedFix
	for _, f := range fixes {
		in = append(in, command.PreparedFix{Description: f})
	}
	_, err := b.PrepareNext(t.Context(), b.cause(), projectID, in)
	must.NoError(t, err)
}

// created is the job.created of a job.
func (b hostedBundle) created(t *testing.T, jobID string) *job.Created {
	t.Helper()
	for _, e := range b.log.Stream(domain.JobStream(jobID)) {
		if c, ok := e.Event.(*job.Created); ok {
			return c
		}
	}
	t.Fatalf("there is no job %s", jobID)
	return nil
}

// regressions are the items that the read models put into the job's list, "key
// origin" each.
func (b hostedBundle) regressions(t *testing.T, jobID string) []string {
	t.Helper()
	var out []string
	for _, item := range b.created(t, jobID).Items {
		if item.Origin != "" {
			out = append(out, item.Key+" "+string(item.Origin))
		}
	}
	return out
}

// streams counts the streams of a category.
func (b hostedBundle) streams(category string) int {
	n := 0
	for _, e := range b.log.All() {
		if e.Revision == 0 && strings.HasPrefix(e.Stream, category) {
			n++
		}
	}
	return n
}
