package v1

import (
	"testing"

	"humanqa/domain/job"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		status         job.Status
		total, checked int
		want           int
	}{
		{"no checklist yet", job.StatusClaimed, 0, 0, 0},
		{"nothing checked", job.StatusClaimed, 3, 0, 0},
		{"rounded down", job.StatusClaimed, 3, 2, 66},
		{"all checked, not submitted", job.StatusClaimed, 3, 3, 99},
		{"pending, with ticks of an earlier claim", job.StatusPending, 2, 1, 0},
		{"completed", job.StatusCompleted, 3, 3, 100},
		{"completed without a list", job.StatusCompleted, 0, 0, 100},
		{"failed with all checked", job.StatusFailed, 3, 3, 99},
	} {
		if got := progress(c.status, ChecklistState{TotalItems: c.total, CheckedItems: c.checked}); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
