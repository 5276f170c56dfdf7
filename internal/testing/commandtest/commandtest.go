// Package commandtest has stand-ins for the ports of a command.Service other than the
// log, for tests that are not about those ports.
package commandtest

import (
	"context"
	"fmt"

	"humanqa/domain/command"
	"humanqa/domain/job"
)

// AI writes one item, says little, and finds nothing.
type AI struct{}

var _ command.AI = AI{}

// Instant implements command.AI.
func (AI) Instant() bool { return true }

// Checklist implements command.AI.
func (AI) Checklist(context.Context, command.ChecklistBrief) ([]command.NewItem, string, error) {
	return []command.NewItem{{Description: "the page loads", Severity: job.Major}}, "test", nil
}

// Analyse implements command.AI.
func (AI) Analyse(_ context.Context, b command.AnalysisBrief) (job.AIReport, error) {
	return job.AIReport{
		ExecutiveSummary: "analysed", HealthScore: job.HealthScore(b.Report.Items), Bugs: []job.Bug{},
		PassCount: b.Report.PassCount, FailCount: b.Report.FailCount, SkipCount: b.Report.SkipCount,
		Strengths: []string{}, Recommendations: []string{}, GeneratedBy: "test",
	}, nil
}

// Review implements command.AI.
func (AI) Review(context.Context, string) (command.Review, error) {
	return command.Review{
		Items: []job.ReportItem{{
			Item:   job.Item{ID: "item-1", Key: "the-page-loads", Description: "the page loads", Severity: job.Major},
			Status: job.ItemPass,
		}},
		Summary: "reviewed", By: "test",
	}, nil
}

// CodeHost takes every commit status, but refuses the token RefusedToken.
type CodeHost struct{}

// RefusedToken is the token that CodeHost refuses.
const RefusedToken = "token-that-is-refused"

var _ command.Statuses = CodeHost{}

// Set implements command.Statuses.
func (CodeHost) Set(_ context.Context, _ job.CommitStatus, token string, _ command.StatusUpdate) error {
	if token == RefusedToken {
		return fmt.Errorf("%w: the token is unknown or expired (401)", command.ErrStatusRefused)
	}
	return nil
}

// NoReads finds no rows: every project is new.
type NoReads struct{}

var _ command.Reads = NoReads{}

// ProjectForHost implements command.Reads.
func (NoReads) ProjectForHost(context.Context, string, string) (string, bool, error) {
	return "", false, nil
}

// OpenFailures implements command.Reads.
func (NoReads) OpenFailures(context.Context, string, string, int) ([]command.Regression, error) {
	return nil, nil
}

// KnownKeys implements command.Reads.
func (NoReads) KnownKeys(context.Context, string, string, []string) (map[string]string, error) {
	return nil, nil
}

// SamePlace implements command.Reads.
func (NoReads) SamePlace(context.Context, string, job.CommitStatus) ([]string, error) {
	return nil, nil
}

// Waiting implements command.Reads.
func (NoReads) Waiting(context.Context, string, string, int) ([]string, error) { return nil, nil }

// Tested implements command.Reads.
func (NoReads) Tested(context.Context, string, string) (bool, error) { return false, nil }

// Ended implements command.Reads: every job may have ended.
func (NoReads) Ended(_ context.Context, _ string, jobIDs []string) ([]string, error) {
	return jobIDs, nil
}
