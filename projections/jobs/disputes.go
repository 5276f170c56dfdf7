package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"humanqa/domain/job"
	"humanqa/internal/pgpool"
)

// rule adds the decision on a dispute. If the verdict is overturned, the report and its
// analysis have other figures from now on.
func (f *jobsFold) rule(j *foldedJob, e *job.DisputeDecided) error {
	r := &j.row
	r.Disputes, r.Refunded = job.Argue(r.Disputes, e), max(r.Refunded, e.Refund)
	if e.Decision != job.Overturned {
		return nil
	}
	r.Items, r.OverallStatus, j.reworded = job.Overturn(r.Items, e.ItemID), e.OverallStatus, true
	r.PassCount, r.FailCount, r.SkipCount = e.PassCount, e.FailCount, e.SkipCount
	f.count(j, job.StatusCompleted).Passed += int64(e.Shift(job.OverallPass))
	return r.reanalyse(func(report job.AIReport) job.AIReport { return report.Overturned(r.Items) })
}

// reanalyse changes the analysis, if there is one.
func (r *storedRow) reanalyse(change func(job.AIReport) job.AIReport) error {
	if !r.Analysed {
		return nil
	}
	var report job.AIReport
	if err := json.Unmarshal([]byte(r.AIReport), &report); err != nil {
		return fmt.Errorf("decode the AI report: %w", err)
	}
	text, err := json.Marshal(change(report))
	r.AIReport = string(text)
	return err
}

// The condition lets the planner use the partial index.
const disputedSQL = `
SELECT id
FROM readmodel.jobs
WHERE account_id = $1
  AND disputes <> '[]'`

// Disputed lists the account's jobs with a disputed verdict.
func (q *Reads) Disputed(ctx context.Context, accountID string) ([]string, error) {
	return pgpool.List[string](ctx, q.db, "the disputed jobs of "+accountID, disputedSQL, accountID)
}
