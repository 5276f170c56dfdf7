package report

import (
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/projections/history"
)

// KnownFailure is an open failure as a checker sees it. It names neither the testers nor
// the tests.
type KnownFailure struct {
	Key           string         `json:"key"` // a finding with this key continues its lineage
	Description   string         `json:"description"`
	Severity      job.Severity   `json:"severity"`
	FailedTests   int            `json:"failedTests"`
	FirstFailedAt wire.Timestamp `json:"firstFailedAt"`
}

// KnownFailureOf shows an open failure to a checker.
func KnownFailureOf(f history.OpenFailure) KnownFailure {
	return KnownFailure{
		Key: f.Key, Description: f.Description, Severity: f.Severity, FailedTests: f.FailedTests,
		FirstFailedAt: wire.Timestamp(f.FirstFailedAt),
	}
}
